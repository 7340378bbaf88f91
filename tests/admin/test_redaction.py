"""Pages and forms: who sees what stands under sensitive keys, and who does not."""

import json
from html import unescape

import pytest
from django.urls import reverse

from robust_queue.admin import display
from robust_queue.arguments import dump_call, load_call
from robust_queue.models import Job, RecurringTask
from robust_queue.redaction import PLACEHOLDER
from tests.support import rows
from tests.testapp.secretive_tasks import Login, log_in

from .recurring_pages import ADD, filled, made, order, page, told

SHOWN = "view_arguments"
UNREDACTED = "view_unredacted_arguments"
HIDDEN = "(could not be redacted)"
RERUN = (
    "view_failedexecution",
    "view_job",
    "view_arguments",
    "retry_job",
    "discard_job",
)
MAKERS = {
    "ready": rows.ready,
    "scheduled": rows.scheduled,
    "blocked": rows.blocked,
    "claimed": rows.claimed,
    "finished": rows.finished,
    "failed": rows.failed,
}


def a_login(*args, **kwargs):
    call = dump_call(args or ["ada", "s3cret"], kwargs)
    return rows.job(task_path=log_in.module_path, arguments=call)


def address(model, row, name="change"):
    return reverse(f"admin:robust_queue_{model}_{name}", args=[row.pk])


def text(response):
    assert response.status_code == 200
    return unescape(response.content.decode())


class TestPages:
    def test_of_a_job_hide_what_is_sensitive(self, as_staff):
        job = a_login("ada", "s3cret", remember={"device": {"apiKey": "s3cret"}})
        shown = text(as_staff("view_job", SHOWN).get(address("job", job)))
        assert "s3cret" not in shown
        assert '"ada"' in shown
        assert shown.count(PLACEHOLDER) == 4, "among the arguments, and in the record"

    @pytest.mark.parametrize("state", MAKERS)
    def test_of_every_state_do_so(self, as_staff, state):
        row = MAKERS[state](a_login())
        browser = as_staff(f"view_{state}execution", SHOWN)
        shown = text(browser.get(address(f"{state}execution", row)))
        assert "s3cret" not in shown
        assert PLACEHOLDER in shown

    def test_show_all_to_those_who_may_see_it(self, as_staff):
        job = a_login()
        shown = text(as_staff("view_job", UNREDACTED).get(address("job", job)))
        assert '"s3cret"' in shown
        assert PLACEHOLDER not in shown

    def test_show_all_to_superusers(self, as_superuser):
        row = rows.failed(a_login())
        shown = text(as_superuser.get(address("failedexecution", row)))
        assert '"s3cret"' in shown

    def test_hide_what_is_sensitive_of_results(self, as_staff):
        row = rows.finished(a_login("ada"))
        row.result = '{"user":"ada","session":"s3ss10n","made":[{"token":7123}]}'
        row.save()
        url = address("finishedexecution", row)
        shown = text(as_staff("view_finishedexecution", SHOWN).get(url))
        assert "s3ss10n" not in shown
        assert "7123" not in shown
        assert shown.count(PLACEHOLDER) == 2

    def test_show_results_to_those_who_may_see_all(self, as_superuser):
        row = rows.finished(a_login("ada"))
        row.result = '{"session":"s3ss10n"}'
        row.save()
        assert "s3ss10n" in text(as_superuser.get(address("finishedexecution", row)))

    def test_hide_what_is_sensitive_of_metadata(self, as_staff):
        job = rows.job(metadata='{"trace":{"auth":"s3cret"}}')
        shown = text(as_staff("view_job", SHOWN).get(address("job", job)))
        assert "s3cret" not in shown
        assert PLACEHOLDER in shown

    def test_are_not_opened_by_hostile_text(self, as_staff):
        job = a_login("<b>ada</b>", **{"<i>token": "<script>s3cret</script>"})
        response = as_staff("view_job", SHOWN).get(address("job", job))
        raw = response.content.decode()
        assert "<b>ada" not in raw
        assert "<i>token" not in raw
        assert "s3cret" not in raw

    @pytest.mark.parametrize(
        "stored",
        [
            "password=s3cret",
            '{"args":1,"kwargs":{"password":"s3cret"}}',
            '["s3cret"]',
            '{"args":' + "[" * 5000 + '"s3cret"' + "]" * 5000 + ',"kwargs":{}}',
        ],
    )
    def test_what_cannot_be_read_is_shown_to_few(self, as_staff, stored):
        job = rows.job(arguments=stored)
        shown = text(as_staff("view_job", SHOWN).get(address("job", job)))
        assert "s3cret" not in shown
        assert HIDDEN in shown

    def test_nothing_is_hidden_where_it_is_switched_off(self, as_staff, settings):
        settings.ROBUST_QUEUE = {"redact": []}
        job = a_login()
        assert '"s3cret"' in text(as_staff("view_job", SHOWN).get(address("job", job)))

    @pytest.mark.parametrize(
        "hook", [lambda *call: 1 / 0, lambda path, args, kwargs: ([object()], {})]
    )
    def test_if_the_function_fails_nothing_is_shown(self, as_staff, settings, hook):
        settings.ROBUST_QUEUE = {"redact_with": hook}
        shown = text(as_staff("view_job", SHOWN).get(address("job", a_login("ada"))))
        assert '"ada"' not in shown
        assert HIDDEN in shown

    def test_the_function_has_a_say(self, as_staff, settings):
        settings.ROBUST_QUEUE = {"redact_with": lambda path, args, kwargs: ([], {})}
        shown = text(as_staff("view_job", SHOWN).get(address("job", a_login("ada"))))
        assert '"ada"' not in shown

    def test_nobody_who_was_not_asked_about_sees_all(self):
        stored = dump_call([Login("ada", "s3cret")], {})
        assert "s3cret" not in display.arguments(stored, rows.TASK)
        assert "s3cret" not in display.result('{"pwd":"s3cret"}')
        assert "s3cret" not in display.structure('{"pwd":"s3cret"}')


class TestRerun:
    def sent(self, **changes):
        given = {"args": ["bob", "0ther"], "kwargs": {}}
        text = json.dumps(given)
        return {"arguments": text, "queue_name": "q", "priority": 0, **changes}

    def test_the_form_is_refused_to_who_may_not_see_all_of_it(self, as_staff):
        row = rows.failed(a_login())
        url = address("failedexecution", row, "rerun")
        browser = as_staff(*RERUN)
        for response in (
            browser.get(url, follow=True),
            browser.post(url, self.sent(), follow=True),
        ):
            assert response.redirect_chain == [(address("failedexecution", row), 302)]
            assert "Some of its arguments are redacted." in text(response)
            assert "s3cret" not in text(response)
        assert Job.objects.get().pk == row.pk

    def test_the_form_shows_the_rest_to_everybody(self, as_staff):
        row = rows.failed(a_login("ada"))
        url = address("failedexecution", row, "rerun")
        browser = as_staff(*RERUN)
        assert '"ada"' in text(browser.get(url))
        browser.post(url, self.sent())
        assert load_call(Job.objects.get().arguments) == (["bob", "0ther"], {})

    def test_who_may_see_all_may_change_it(self, as_staff):
        row = rows.failed(a_login())
        url = address("failedexecution", row, "rerun")
        browser = as_staff(*RERUN, UNREDACTED)
        form = browser.get(url).context["form"]
        assert load_call(form.initial["arguments"]) == (["ada", "s3cret"], {})
        browser.post(url, self.sent(arguments=form.initial["arguments"]))
        assert Job.objects.get().pk != row.pk
        assert load_call(Job.objects.get().arguments) == (["ada", "s3cret"], {})

    @pytest.mark.parametrize("ascii_only", [True, False])
    def test_the_placeholder_is_no_value(self, as_superuser, ascii_only):
        row = rows.failed(a_login())
        given = {"args": ["ada", PLACEHOLDER], "kwargs": {}}
        sent = self.sent(arguments=json.dumps(given, ensure_ascii=ascii_only))
        url = address("failedexecution", row, "rerun")
        (error,) = as_superuser.post(url, sent).context["form"].errors["arguments"]
        assert "stands for a value that was not shown" in error
        assert Job.objects.get().pk == row.pk


class TestRecurringTasks:
    def test_are_shown_instead_of_edited(self, as_staff):
        row = made(task=log_in, args=["ada", "s3cret"])
        response = as_staff("change_recurringtask", SHOWN).get(page(row))
        shown = text(response)
        assert "s3cret" not in shown
        assert PLACEHOLDER in shown
        assert "Some of its arguments are redacted." in shown
        assert 'name="arguments"' not in shown

    def test_a_request_made_by_hand_is_refused(self, as_staff):
        row = made(task=log_in, args=["ada", "s3cret"])
        call = {"args": ["ada", "0ther"], "kwargs": {}}
        sent = filled(task_path=log_in.module_path, arguments=call)
        response = as_staff("change_recurringtask", SHOWN).post(page(row), sent)
        assert response.status_code == 403
        stored = RecurringTask.objects.get().arguments
        assert load_call(stored) == (["ada", "s3cret"], {})

    def test_can_still_be_paused(self, as_staff):
        row = made(task=log_in, args=["ada", "s3cret"])
        browser = as_staff("change_recurringtask", SHOWN)
        response = order(browser, row, "pause", follow=True)
        assert told(response) == ["1 recurring task paused."]
        assert not RecurringTask.objects.get().enabled

    def test_without_secrets_are_edited_by_everybody_who_may(self, as_staff):
        row = made(task=log_in, args=["ada", None])
        shown = text(as_staff("change_recurringtask", SHOWN).get(page(row)))
        assert 'name="arguments"' in shown
        assert "Some of its arguments are redacted." not in shown

    def test_who_may_see_all_edits_all(self, as_staff):
        row = made(task=log_in, args=["ada", "s3cret"])
        browser = as_staff("change_recurringtask", UNREDACTED)
        shown = text(browser.get(page(row)))
        assert "s3cret" in shown
        assert 'name="arguments"' in shown

    def test_who_only_looks_is_not_told_about_changes(self, as_staff):
        row = made(task=log_in, args=["ada", "s3cret"])
        shown = text(as_staff("view_recurringtask", SHOWN).get(page(row)))
        assert PLACEHOLDER in shown
        assert "Some of its arguments are redacted." not in shown

    def test_the_placeholder_is_no_value(self, as_superuser):
        sent = filled(arguments={"args": [PLACEHOLDER], "kwargs": {}})
        response = as_superuser.post(reverse(ADD), sent)
        (error,) = response.context["adminform"].form.errors["arguments"]
        assert "stands for a value that was not shown" in error
        assert not RecurringTask.objects.exists()
