"""The pages of operations: who wanted what, how far it is, and a way to stop it."""

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.support import rows

LIST = reverse("admin:robust_queue_operation_changelist")


def page(operation, name="change"):
    return reverse(f"admin:robust_queue_operation_{name}", args=[operation.pk])


def text(response):
    assert response.status_code == 200
    return response.content.decode()


def test_the_list_tells_who_wants_what(as_staff):
    rows.operation(
        verb="run_now",
        criteria='{"state": "scheduled", "queue": "mail"}',
        requested_by="grace",
        expected=2_000,
        matched=500,
        started_at=timezone.now(),
    )
    shown = text(as_staff("view_operation").get(LIST))
    for words in (
        *("Run now", "scheduled jobs, in queue mail", "grace", "under way"),
        '<progress max="2000" value="500"></progress> 500 of 2,000 jobs met',
    ):
        assert words in shown


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({}, "waiting"),
        ({"started_at": timezone.now()}, "under way"),
        ({"finished_at": timezone.now()}, "finished"),
        ({"finished_at": timezone.now(), "problem": "x"}, "given up"),
        ({"finished_at": timezone.now(), "stopped_at": timezone.now()}, "stopped"),
    ],
)
def test_where_it_stands(as_superuser, facts, told):
    operation = rows.operation(**facts)
    shown = text(as_superuser.get(page(operation)))
    assert f'<span class="rqueue-badge">{told}</span>' in shown
    assert ("data-rqueue-live" in shown) is ("finished_at" not in facts)


def test_what_was_passed_over_and_what_went_wrong(as_superuser):
    rows.process(kind="Dispatcher")
    operation = rows.operation(
        passed_over='{"claimed": 1200, "gone": 3}', problem="OperationalError: <gone>"
    )
    shown = text(as_superuser.get(page(operation)))
    assert "<li>1,200 running</li><li>3 gone</li>" in shown
    assert "OperationalError: &lt;gone&gt;" in shown
    assert "It will be tried again." in shown


def test_without_a_dispatcher_it_says_so(as_superuser):
    operation = rows.operation()
    assert "none is alive" in text(as_superuser.get(page(operation)))
    rows.process(kind="Dispatcher")
    assert "none is alive" not in text(as_superuser.get(page(operation)))


def test_without_a_goal_the_bar_only_moves(as_superuser):
    operation = rows.operation(expected=None, matched=1_500)
    shown = text(as_superuser.get(page(operation)))
    assert "<progress></progress> 1,500 jobs met so far" in shown


def test_criteria_of_a_later_version(as_superuser):
    operation = rows.operation(criteria='{"colour": "red"}')
    assert "colour" in text(as_superuser.get(page(operation)))
    assert "colour" in text(as_superuser.get(LIST))


class TestStop:
    def test_it_is_stopped_and_written_down(self, as_staff):
        operation = rows.operation(verb="cancel")
        browser = as_staff("view_job", "cancel_job")
        assert page(operation, "stop") in text(browser.get(page(operation)))
        response = browser.post(page(operation, "stop"), follow=True)
        assert "What is done stays done." in text(response)
        operation.refresh_from_db()
        assert operation.status == "stopped"
        entry = LogEntry.objects.get()
        assert (entry.object_id, entry.action_flag) == (str(operation.pk), CHANGE)

    def test_what_is_over_is_over(self, as_superuser):
        operation = rows.operation(finished_at=timezone.now())
        assert page(operation, "stop") not in text(as_superuser.get(page(operation)))
        response = as_superuser.post(page(operation, "stop"), follow=True)
        assert "It was over already." in text(response)
        assert not LogEntry.objects.exists()

    def test_it_takes_the_permission_of_the_verb(self, as_staff):
        operation = rows.operation(verb="retry")
        browser = as_staff("view_job", "view_operation", "cancel_job", "discard_job")
        assert page(operation, "stop") not in text(browser.get(page(operation)))
        assert browser.post(page(operation, "stop")).status_code == 403
        operation.refresh_from_db()
        assert operation.status == "waiting"

    def test_it_takes_no_other_permission(self, as_staff):
        operation = rows.operation(verb="retry")
        browser = as_staff("retry_job")
        assert "What is done" in text(
            browser.post(page(operation, "stop"), follow=True)
        )

    def test_one_that_only_a_later_version_knows(self, as_superuser):
        operation = rows.operation(verb="polish")
        assert page(operation, "stop") not in text(as_superuser.get(page(operation)))
        assert as_superuser.post(page(operation, "stop")).status_code == 403

    def test_without_any_permission(self, as_staff):
        operation = rows.operation(verb="retry")
        assert as_staff().post(page(operation, "stop")).status_code == 403

    def test_to_look_changes_nothing(self, as_superuser):
        operation = rows.operation()
        assert as_superuser.get(page(operation, "stop")).status_code == 405

    def test_a_form_of_somebody_else(self, as_superuser):
        operation = rows.operation()
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = as_superuser.cookies
        assert strict.post(page(operation, "stop")).status_code == 403

    def test_one_that_is_gone(self, as_superuser):
        operation = rows.operation()
        address = page(operation, "stop")
        operation.delete()
        assert as_superuser.post(address).status_code == 404
