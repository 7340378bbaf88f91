"""Recurring tasks are made and changed in a form, and judged like declarations."""

from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone

from robust_queue.admin import recurring
from robust_queue.arguments import dump_call, load_call
from robust_queue.exceptions import RecurringTaskError
from robust_queue.lifecycle.recur import next_instant, recur
from robust_queue.lifecycle.remit import Remit
from robust_queue.lifecycle.timetable import pause
from robust_queue.models import Job, RecurringTask
from tests.support import rows
from tests.testapp.tasks import add, elsewhere, immediate, mail

from .recurring_pages import ADD, filled, made, page


def errors(response):
    assert response.status_code == 200
    return dict(response.context["adminform"].form.errors)


class TestAdding:
    def test_makes_what_schedulers_follow(self, as_staff):
        browser = as_staff("add_recurringtask")
        response = browser.post(reverse(ADD), filled())
        assert response.status_code == 302
        row = RecurringTask.objects.get()
        assert (row.key, row.static, row.state) == ("k", False, "active")
        assert next_instant("default", Remit(())) == row.next_run_at
        assert recur("default", now=row.next_run_at, remit=Remit(())) == 1
        assert load_call(Job.objects.get().arguments) == ([1], {"b": 2})

    def test_takes_every_option(self, as_superuser):
        given = filled(
            schedule=" 30  3 * * mon-fri ",
            timezone="Europe/Madrid",
            queue_name="photos",
            priority="-5",
            description="Before people wake up.",
            enabled=None,
            on_missed="run_all",
            missed_limit="7",
            overlap="skip",
            jitter="90",
        )
        as_superuser.post(reverse(ADD), given)
        row = RecurringTask.objects.get()
        assert (row.schedule, row.timezone) == ("30 3 * * mon-fri", "Europe/Madrid")
        assert (row.queue_name, row.priority) == ("photos", -5)
        assert (row.description, row.enabled) == ("Before people wake up.", False)
        assert (row.on_missed, row.missed_limit) == ("run_all", 7)
        assert (row.overlap, row.jitter) == ("skip", 90)

    def test_leaves_queue_and_priority_to_the_task(self, as_superuser):
        given = filled(
            task_path=mail.module_path, arguments={"args": [1], "kwargs": {}}
        )
        as_superuser.post(reverse(ADD), given)
        row = RecurringTask.objects.get()
        assert (row.queue_name, row.priority, row.timezone) == ("", None, "")
        recur("default", now=row.next_run_at)
        job = Job.objects.get()
        assert (job.queue_name, job.priority) == ("mail", 10)

    def test_tells_what_was_meant_in_words_and_five_runs(self, as_superuser):
        given = filled(schedule="30 3 * * mon-fri", timezone="Europe/Madrid")
        response = as_superuser.post(reverse(ADD), given, follow=True)
        done, told = (str(each) for each in response.context["messages"])
        assert "was added successfully" in done
        words, _, runs = told.partition(". Next runs: ")
        assert words == "At 03:30, Monday through Friday (Europe/Madrid)"
        runs = runs.split(" · ")
        assert len(runs) == 5
        assert all("03:30:00 CE" in each for each in runs)

    def test_says_so_if_it_is_paused(self, as_superuser):
        response = as_superuser.post(reverse(ADD), filled(enabled=None), follow=True)
        assert "Paused. Once resumed: At 12:00 (UTC)." in response.content.decode()
        assert next_instant("default") is None

    def test_is_written_down(self, as_superuser):
        as_superuser.post(reverse(ADD), filled())
        entry = LogEntry.objects.get()
        assert (entry.action_flag, entry.object_repr) == (ADDITION, "k")
        assert entry.object_id == str(RecurringTask.objects.get().pk)

    def test_what_is_no_json_is_read_by_its_tag(self, as_superuser):
        moment = datetime(2030, 1, 1, tzinfo=UTC)
        as_superuser.post(reverse(ADD), filled(arguments=dump_call([moment], {})))
        assert load_call(RecurringTask.objects.get().arguments) == ([moment], {})

    def test_the_key_of_what_is_retired_is_free(self, as_superuser):
        old = rows.recurring_task(key="k", retired_at=timezone.now())
        as_superuser.post(reverse(ADD), filled())
        row = RecurringTask.objects.get()
        assert (row.pk, row.static, row.state) == (old.pk, False, "active")

    def test_the_form_offers_the_tasks_and_zones_there_are(self, as_superuser):
        response = as_superuser.get(reverse(ADD))
        text = response.content.decode()
        offered = dict(response.context["adminform"].form.fields["task_path"].choices)
        assert {add.module_path, mail.module_path} <= offered.keys()
        assert elsewhere.module_path not in offered  # it is kept in another database
        assert '<option value="Europe/Madrid"></option>' in text
        assert 'list="rqueue-zones"' in text
        assert "&quot;kwargs&quot;: {}" in text


WRONG = {
    "no key": ("key", "", "This field is required."),
    "long key": ("key", "k" * 256, "at most 255 characters"),
    "unprintable key": ("key", "a\tb", "without control characters"),
    "no task": ("task_path", "", "This field is required."),
    "undeclared task": ("task_path", "tests.testapp.tasks.gone", "valid choice"),
    "any callable": ("task_path", "os.system", "valid choice"),
    "another database": ("task_path", elsewhere.module_path, "valid choice"),
    "no schedule": ("schedule", "", "This field is required."),
    "nonsense": ("schedule", "whenever", "'whenever' is no schedule"),
    "no such day": ("schedule", "0 0 30 2 *", "there is no such day"),
    "zone": ("timezone", "Europe/Madird", "Did you mean 'Europe/Madrid'"),
    "path as zone": ("timezone", "../../etc/passwd", "is no time zone"),
    "syntax": ("arguments", "{", "is not JSON"),
    "shape": ("arguments", "[1]", "is not a call with args and kwargs"),
    "tag": (
        "arguments",
        '{"args": [{"$type": "nonsense"}], "kwargs": {}}',
        "is not known",
    ),
    "too many": (
        "arguments",
        '{"args": [1, 2, 3], "kwargs": {}}',
        "tests.testapp.tasks.add(): too many positional arguments",
    ),
    "queue": ("queue_name", "mail*", "without '*'"),
    "priority": ("priority", "101", "priority"),
    "no number": ("priority", "much", "Enter a whole number."),
    "on missed": ("on_missed", "panic", "valid choice"),
    "limit": ("missed_limit", "0", "a whole number from 1 to 10,000"),
    "huge limit": ("missed_limit", "10001", "a whole number from 1 to 10,000"),
    "overlap": ("overlap", "dance", "valid choice"),
    "jitter": ("jitter", "86401", "at most a day"),
    "huge jitter": ("jitter", "9" * 30, ""),
    "negative jitter": ("jitter", "-1", "greater than or equal to 0"),
    "null": ("description", "a\0b", "Null characters"),
}


class TestWhatIsWrong:
    @pytest.mark.parametrize(("field", "value", "problem"), WRONG.values(), ids=WRONG)
    def test_is_told_at_its_field(self, as_superuser, field, value, problem):
        response = as_superuser.post(reverse(ADD), filled(**{field: value}))
        found = errors(response)
        assert list(found) == [field]
        assert problem in found[field][0]
        assert "@recurring" not in found[field][0]
        assert not RecurringTask.objects.exists()
        assert not LogEntry.objects.exists()

    def test_is_told_all_at_once(self, as_superuser):
        wrong = {"schedule": "whenever", "timezone": "Mars", "jitter": "90000"}
        response = as_superuser.post(reverse(ADD), filled(**wrong))
        assert errors(response).keys() == wrong.keys()

    @pytest.mark.parametrize("static", [True, False])
    def test_a_key_that_is_taken(self, as_superuser, static):
        rows.recurring_task(key="k", static=static, schedule="@daily")
        found = errors(as_superuser.post(reverse(ADD), filled()))
        assert found == {"key": ["There is a recurring task of that key already."]}
        assert RecurringTask.objects.get().schedule == "@daily"

    def test_what_the_backend_of_the_task_cannot_do(self, as_superuser):
        given = {"overlap": "skip", "jitter": "5"}
        row = made(task=immediate, args=["now"])
        call = {"args": ["now"], "kwargs": {}}
        response = as_superuser.post(
            page(row),
            filled(task_path=immediate.module_path, arguments=call, **given),
        )
        assert errors(response).keys() == given.keys()

    def test_a_queue_that_the_alias_does_not_have(self, as_superuser):
        backend = "robust_queue.backend.RobustQueueBackend"
        default = {"BACKEND": backend, "QUEUES": ["default"]}
        row = made()
        with override_settings(TASKS={**settings.TASKS, "default": default}):
            response = as_superuser.post(page(row), filled(queue_name="nonsense"))
        assert list(errors(response)) == ["queue_name"]

    def test_somebody_was_faster(self, as_superuser, monkeypatch):
        """Between the look at the key and the row itself."""

        def refuse(*args, **options):
            raise RecurringTaskError("There is one already.")

        monkeypatch.setattr(recurring, "schedule", refuse)
        response = as_superuser.post(reverse(ADD), filled(), follow=True)
        assert "There is one already." in response.content.decode()
        assert not LogEntry.objects.exists()


class TestChanging:
    def test_is_seen_by_schedulers(self, as_staff):
        row = made(schedule="@yearly")
        browser = as_staff("change_recurringtask", "view_arguments")
        response = browser.post(page(row), filled(schedule="every minute"), follow=True)
        assert "Every minute (UTC). Next runs: " in response.content.decode()
        row.refresh_from_db()
        assert row.schedule == "every minute"
        assert next_instant("default", Remit(())) == row.next_run_at
        assert row.next_run_at <= timezone.now() + timedelta(minutes=1)
        (entry,) = LogEntry.objects.all()
        assert (entry.action_flag, entry.object_id) == (CHANGE, str(row.pk))
        assert "Schedule" in entry.get_change_message()

    def test_the_cursor_stays_if_the_times_do(self, as_superuser):
        row = made()
        as_superuser.post(page(row), filled(description="Now with words."))
        changed = RecurringTask.objects.get()
        assert changed.description == "Now with words."
        assert changed.next_run_at == row.next_run_at

    def test_pauses_and_resumes(self, as_superuser):
        row = made()
        as_superuser.post(page(row), filled(enabled=None))
        assert RecurringTask.objects.get().state == "paused"
        as_superuser.post(page(row), filled())
        assert RecurringTask.objects.get().state == "active"

    def test_the_key_stays(self, as_superuser):
        row = made()
        text = as_superuser.get(page(row)).content.decode()
        assert 'name="key"' not in text
        as_superuser.post(page(row), filled(key="another"))
        assert RecurringTask.objects.get().key == "k"

    def test_arguments_come_back_as_they_were(self, as_superuser):
        moment = datetime(2030, 1, 1, tzinfo=UTC)
        row = made(args=[moment], kwargs={"b": "grün"})
        form = as_superuser.get(page(row)).context["adminform"].form
        assert "grün" in form.initial["arguments"]
        as_superuser.post(page(row), filled(arguments=form.initial["arguments"]))
        stored = RecurringTask.objects.get().arguments
        assert load_call(stored) == ([moment], {"b": "grün"})

    def test_a_task_of_another_backend_can_be_changed(self, as_superuser):
        row = made(task=immediate, args=["now"])
        call = {"args": ["now"], "kwargs": {}}
        given = filled(
            task_path=immediate.module_path, arguments=call, schedule="@daily"
        )
        assert as_superuser.post(page(row), given).status_code == 302
        assert RecurringTask.objects.get().schedule == "@daily"

    def test_a_task_that_is_gone_has_to_be_replaced(self, as_superuser):
        row = made()
        gone = "tests.testapp.tasks.gone"
        RecurringTask.objects.update(task_path=gone)
        text = as_superuser.get(page(row)).content.decode()
        assert "Its task is not declared here" in text
        found = errors(as_superuser.post(page(row), filled(task_path=gone)))
        assert list(found) == ["task_path"]
        as_superuser.post(page(row), filled())
        assert RecurringTask.objects.get().task_path == add.module_path

    def test_the_page_of_a_wrong_form_tells_what_is_stored(self, as_superuser):
        row = made(schedule="@daily")
        pause("default", "k")
        given = filled(schedule="@hourly", timezone="Mars")
        text = as_superuser.post(page(row), given).content.decode()
        assert "At 00:00" in text
        assert 'value="resume"' in text
