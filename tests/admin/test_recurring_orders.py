"""What operators do to recurring tasks, and what those who may only look cannot."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.auth.models import Permission, User
from django.urls import reverse
from django.utils import timezone

from robust_queue.admin import recurring_orders
from robust_queue.exceptions import RecurringTaskError
from robust_queue.lifecycle.recur import next_instant, recur
from robust_queue.lifecycle.remit import Remit
from robust_queue.models import Job, RecurringExecution, RecurringTask
from tests.support import rows

from .recurring_pages import (
    ADD,
    LIST,
    act,
    address,
    declared,
    filled,
    log,
    made,
    order,
    page,
    text,
    told,
)


class TestOrders:
    def test_run_now(self, as_staff):
        row = made(enabled=False)
        browser = as_staff("change_recurringtask", "run_job")
        response = order(browser, row, "run", follow=True)
        job = Job.objects.get()
        assert reverse("admin:robust_queue_job_change", args=[job.pk]) in text(response)
        (entry,) = RecurringExecution.objects.all()
        assert (entry.job_id, entry.by_hand) == (job.pk, True)
        assert log() == [(CHANGE, "k")]
        assert LogEntry.objects.get().change_message == "Run by hand."

    def test_pause_and_resume(self, as_staff):
        row = declared(key="k", next_run_at=timezone.now() + timedelta(hours=1))
        browser = as_staff("change_recurringtask", "run_job")
        assert told(order(browser, row, "pause", follow=True)) == [
            "1 recurring task paused."
        ]
        assert next_instant("default", Remit(["k"])) is None
        assert told(order(browser, row, "pause", follow=True)) == [
            "1 was paused already."
        ]
        assert told(order(browser, row, "resume", follow=True)) == [
            "1 recurring task resumed."
        ]
        assert next_instant("default", Remit(["k"])) is not None
        assert told(order(browser, row, "resume", follow=True)) == ["1 was not paused."]
        assert log() == [(CHANGE, "k"), (CHANGE, "k")]

    @pytest.mark.parametrize("word", ["", "delete", "schedule"])
    def test_nothing_else(self, as_superuser, word):
        assert order(as_superuser, made(), word).status_code == 404

    def test_somebody_has_deleted_it(self, as_superuser):
        row = made()
        RecurringTask.objects.all().delete()
        assert order(as_superuser, row, "run").status_code == 404

    def test_are_no_links(self, as_superuser):
        row = made()
        response = as_superuser.get(address(row, "order"), {"order": "run"})
        assert response.status_code == 405
        assert not Job.objects.exists()

    def test_of_other_sites_are_refused(self, as_superuser):
        row = made()
        as_superuser.handler.enforce_csrf_checks = True
        assert order(as_superuser, row, "run").status_code == 403
        assert as_superuser.post(page(row), filled()).status_code == 403

    def test_a_task_that_cannot_be_enqueued(self, as_superuser):
        row = made()
        RecurringTask.objects.update(task_path="tests.testapp.tasks.gone")
        (problem,) = told(order(as_superuser, row, "run", follow=True))
        assert "was not enqueued: UnknownTaskError" in problem
        assert log() == []


class TestActions:
    def test_run_pause_and_resume_several(self, as_staff):
        chosen = [made("a"), made("b"), declared(key="c")]
        RecurringTask.objects.filter(key="c").update(
            arguments='{"args":[],"kwargs":{}}'
        )
        made("d")
        browser = as_staff("change_recurringtask", "run_job")
        (done,) = told(act(browser, "run_selected", *chosen))
        assert done.startswith("3 recurring tasks were enqueued. Job ")
        assert Job.objects.count() == 3
        assert told(act(browser, "pause_selected", *chosen[:2])) == [
            "2 recurring tasks paused."
        ]
        assert told(act(browser, "pause_selected", *chosen)) == [
            "1 recurring task paused. 2 were paused already."
        ]
        assert recur("default", now=timezone.now() + timedelta(days=2)) == 1  # only d
        assert told(act(browser, "resume_selected", *chosen)) == [
            "3 recurring tasks resumed."
        ]
        assert len(log()) == 3 + 2 + 1 + 3

    def test_errors_are_told_row_by_row(self, as_superuser):
        good, *bad = [made(f"k{number}") for number in range(8)]
        RecurringTask.objects.filter(pk__in=[row.pk for row in bad]).update(
            task_path="tests.testapp.tasks.gone"
        )
        done, *problems = told(act(as_superuser, "run_selected", good, *bad))
        assert done.startswith("1 recurring task was enqueued.")
        assert len(problems) == 6
        assert all("'k" in each for each in problems[:5])
        assert problems[-1] == "2 more were refused."
        assert log() == [(CHANGE, "k0")]


class TestDeleting:
    def test_through_the_page(self, as_staff):
        row = made()
        rows.recurring_execution(task_key="k")
        browser = as_staff("view_recurringtask", "delete_recurringtask")
        assert "deletelink" in text(browser.get(page(row)))
        browser.post(address(row, "delete"), {"post": "yes"})
        assert not RecurringTask.objects.exists()
        assert next_instant("default") is None
        assert RecurringExecution.objects.exists()
        assert log() == [(DELETION, "k")]

    def test_through_the_list_after_a_question(self, as_staff):
        first, second = made("a"), made("b")
        browser = as_staff("view_recurringtask", "delete_recurringtask")
        assert "Are you sure" in text(act(browser, "delete_selected", first))
        assert RecurringTask.objects.count() == 2
        act(browser, "delete_selected", first, post="yes")
        assert RecurringTask.objects.get().pk == second.pk
        assert log() == [(DELETION, "a")]

    def test_what_is_declared_stays(self, as_superuser):
        row, other = declared(key="static"), made("dynamic")
        assert (
            as_superuser.post(address(row, "delete"), {"post": "yes"}).status_code
            == 403
        )
        message = "“static” is declared in code or settings: it can be deleted there."
        asked = act(as_superuser, "delete_selected", row, other)
        assert message in told(asked)
        assert "Recurring tasks: 1" in text(asked)
        assert told(act(as_superuser, "delete_selected", row, post="yes")) == [message]
        act(as_superuser, "delete_selected", row, other, post="yes")
        assert [each.key for each in RecurringTask.objects.all()] == ["static"]

    def test_what_is_retired_may_go(self, as_superuser):
        row = declared(retired_at=timezone.now(), next_run_at=None)
        act(as_superuser, "delete_selected", row, post="yes")
        assert not RecurringTask.objects.exists()

    def test_what_is_declared_again_meanwhile(self, as_superuser, monkeypatch):
        row = made()

        def refuse(database, key):
            raise RecurringTaskError("It would come back.")

        monkeypatch.setattr(recurring_orders.timetable, "unschedule", refuse)
        for response in (
            act(as_superuser, "delete_selected", row, post="yes"),
            as_superuser.post(address(row, "delete"), {"post": "yes"}, follow=True),
        ):
            assert "It would come back." in told(response)
        assert RecurringTask.objects.exists()


def everything(browser, row):
    """Try what there is to do, by requests made by hand."""
    deletion = {"action": "delete_selected", "_selected_action": [row.pk]}
    ticked = {"_selected_action": [row.pk]}
    return {
        "add": browser.post(reverse(ADD), filled(key="new")),
        "change": browser.post(page(row), filled(schedule="@hourly")),
        "run": order(browser, row, "run"),
        "pause": order(browser, row, "pause"),
        "delete": browser.post(address(row, "delete"), {"post": "yes"}),
        "run action": browser.post(reverse(LIST), {"action": "run_selected", **ticked}),
        "delete action": browser.post(reverse(LIST), {**deletion, "post": "yes"}),
    }


def state():
    return list(RecurringTask.objects.order_by("pk").values()), Job.objects.count()


class TestPermissions:
    def test_strangers_are_asked_to_log_in(self, client, db):
        row = made()
        before = state()
        for response in everything(client, row).values():
            assert "login" in response.url
        assert state() == before

    @pytest.mark.parametrize("codenames", [[], ["view_recurringtask"]])
    def test_who_may_only_look_does_nothing(self, as_staff, codenames):
        row = made()
        before = state()
        browser = as_staff(*codenames)
        answers = everything(browser, row)
        for name in ("add", "change", "run", "pause", "delete"):
            assert answers[name].status_code == 403
        assert state() == before
        assert log() == []

    def test_who_may_only_look_sees_everything_and_no_buttons(self, as_staff):
        row = made(description="Before people wake up.")
        browser = as_staff("view_recurringtask")
        shown = text(browser.get(page(row)))
        assert "Before people wake up." in shown
        assert "At 12:00" in shown
        main = shown.partition('id="content-main"')[2]
        for tag in (
            '<input type="text"',
            "<select",
            "<textarea",
            "<button",
            "<datalist",
        ):
            assert tag not in main
        listed = text(browser.get(reverse(LIST)))
        for name in ("run_selected", "pause_selected", "delete_selected", "addlink"):
            assert name not in listed.partition('id="content-main"')[2]

    @pytest.mark.parametrize(
        ("codename", "allowed"),
        [
            ("add_recurringtask", {"add"}),
            ("change_recurringtask", {"change", "pause"}),
            ("run_job", {"run"}),
            ("delete_recurringtask", {"delete"}),
        ],
    )
    def test_each_does_its_own(self, as_staff, codename, allowed):
        row = made()
        browser = as_staff("view_recurringtask", "view_arguments")
        wanted = Permission.objects.get(codename=codename)
        User.objects.get().user_permissions.add(wanted)
        answers = everything(browser, row)
        names = {"add", "change", "run", "pause", "delete"}
        forbidden = {name for name in names if answers[name].status_code == 403}
        assert forbidden == names - allowed
        assert RecurringTask.objects.filter(key="new").exists() == ("add" in allowed)
        assert Job.objects.count() == 2 * ("run" in allowed)
        assert RecurringTask.objects.filter(key="k").exists() == (
            "delete" not in allowed
        )

    def test_nobody_changes_what_is_declared(self, as_superuser):
        row = declared(key="k")
        before = RecurringTask.objects.values().get()
        assert as_superuser.post(page(row), filled()).status_code == 403
        assert RecurringTask.objects.values().get() == before

    def test_a_copy_of_a_form_is_no_way_around(self, as_staff):
        """Django's "save as new" needs the permission to add, and the same form."""
        row = declared(key="k")
        browser = as_staff("change_recurringtask", "run_job")
        given = filled(key="new", _saveasnew="1")
        assert browser.post(page(row), given).status_code == 403
        assert RecurringTask.objects.count() == 1
