"""What a task raises, and what is declared for it, on every database."""

from datetime import timedelta

import pytest
from django.utils import timezone

from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.moments import later
from robust_queue.logs import take_over
from robust_queue.models import Attempt, FailedExecution, Job, ScheduledExecution
from robust_queue.signals import attempt_failed, attempt_snoozed
from robust_queue.testing import drain
from tests.support.invariants import states
from tests.support.receivers import frameworks_kept
from tests.testapp import failing_tasks as tasks

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def run():
    """One attempt, whenever it is due."""
    dispatch_due("default", now=timezone.now() + timedelta(days=1))
    (result,) = drain()
    return result


def failure_of(result):
    return FailedExecution.objects.get(pk=result.id)


@pytest.fixture
def heard():
    """What receivers of a signal were told."""
    told, connected = [], []

    def listen(signal):
        def receive(**kwargs):
            told.append(kwargs)

        signal.connect(receive, weak=False)
        connected.append((signal, receive))
        return told

    yield listen
    for signal, receive in connected:
        signal.disconnect(receive)


class TestWhichErrors:
    def test_one_that_is_listed_is_tried_again(self):
        tasks.choose.enqueue("os")
        assert [run().status for _ in range(3)] == ["READY", "READY", "FAILED"]

    def test_a_timeout_of_the_network_is_one_of_them(self):
        tasks.choose.enqueue("time")
        assert run().status == "READY"

    def test_one_that_is_not_listed_fails_at_once(self):
        result = tasks.choose.enqueue("late")
        assert run().status == "FAILED"
        assert failure_of(result).kind == "timed_out"

    def test_one_that_is_to_be_dropped(self, caplog):
        caplog.set_level("INFO")
        result = tasks.choose.enqueue("key")
        with frameworks_kept():
            take_over()
            run()
        row = failure_of(result)
        assert (row.kind, row.exception_class) == ("discarded", "builtins.KeyError")
        assert not [r for r in caplog.records if r.levelname == "ERROR"]

    def test_timeouts_are_tried_again_if_they_are_named(self):
        tasks.try_again_when_late.enqueue()
        assert [run().status for _ in range(3)] == ["READY", "READY", "FAILED"]
        assert {each.kind for each in Attempt.objects.all()} == {"timed_out"}

    def test_or_dropped(self):
        result = tasks.be_dropped_when_late.enqueue()
        run()
        assert failure_of(result).kind == "discarded"


class TestRetry:
    def test_after_so_long(self, heard):
        told = heard(attempt_failed)
        result = tasks.ask_again.enqueue(after=90)
        run()
        row = ScheduledExecution.objects.get(pk=result.id)
        assert row.scheduled_at == row.created_at + timedelta(seconds=90)
        assert told[0]["reason"] == "robust_queue.exceptions.Retry: not yet"

    def test_as_declared_if_nothing_is_said(self):
        result = tasks.ask_again.enqueue()
        run()
        row = ScheduledExecution.objects.get(pk=result.id)
        assert 18 <= (row.scheduled_at - row.created_at).total_seconds() <= 22

    def test_within_the_attempts(self):
        tasks.ask_again.enqueue(after=1)
        assert [run().status for _ in range(3)] == ["READY", "READY", "FAILED"]

    def test_within_three_if_none_are_declared(self):
        tasks.ask_again_undeclared.enqueue()
        assert [run().status for _ in range(3)] == ["READY", "READY", "FAILED"]


class TestSnooze:
    def test_it_uses_up_no_attempt(self, heard):
        told = heard(attempt_snoozed)
        result = tasks.sleep_on_it.enqueue(3)
        seen = [run() for _ in range(4)]
        assert [each.status for each in seen] == ["READY"] * 3 + ["SUCCESSFUL"]
        assert seen[-1].return_value == 1
        result.refresh()
        assert (result.attempts, result.errors) == (1, [])
        assert len(told) == 3
        assert told[0]["reason"] == "too early"

    def test_when(self):
        result = tasks.sleep_on_it.enqueue(1, seconds=3600)
        run()
        row = ScheduledExecution.objects.get(pk=result.id)
        assert row.scheduled_at == row.created_at + HOUR
        assert (row.attempts, row.queue_name) == (0, "default")

    def test_until_a_moment(self):
        moment = timezone.now() + HOUR
        result = tasks.sleep_until.enqueue(moment)
        run()
        assert ScheduledExecution.objects.get(pk=result.id).scheduled_at == moment

    def test_a_moment_that_is_past_is_now(self):
        now = timezone.now()
        assert later(now - HOUR, now=now) == now
        assert later(-HOUR, now=now) == now

    def test_one_that_is_out_of_reach_is_a_failure(self):
        result = tasks.sleep_until.enqueue(timedelta(days=999_999_999))
        assert run().status == "FAILED"
        assert failure_of(result).exception_class == "builtins.ValueError"


def test_discard():
    result = tasks.give_it_up.enqueue()
    assert run().status == "FAILED"
    row = failure_of(result)
    assert (row.kind, row.message) == ("discarded", "of no use any more")


class TestDeadline:
    def test_a_job_that_comes_too_late_does_not_run(self):
        result = tasks.hurry.enqueue()
        Job.objects.update(enqueued_at=timezone.now() - 2 * HOUR)
        assert run().status == "FAILED"
        row = failure_of(result)
        assert (row.kind, row.exception_class) == (
            "expired",
            "robust_queue.exceptions.TaskExpired",
        )

    def test_an_attempt_that_would_come_too_late_does_not_come(self):
        result = tasks.hurry.enqueue()
        assert [run().status for _ in range(2)] == ["READY", "FAILED"]
        assert failure_of(result).kind == ""


class TestDefaults:
    def test_of_the_queue_and_of_all(self, settings):
        settings.ROBUST_QUEUE = {
            "task_defaults": {"max_attempts": 2, "backoff": [1]},
            "queue_defaults": {"default": {"max_attempts": 3}},
        }
        tasks.declare_nothing.enqueue()
        assert [run().status for _ in range(3)] == ["READY", "READY", "FAILED"]

    def test_what_the_task_says_goes_first(self, settings):
        settings.ROBUST_QUEUE = {"queue_defaults": {"default": {"max_attempts": 9}}}
        tasks.ask_again.enqueue(after=1)
        assert [run().status for _ in range(3)] == ["READY", "READY", "FAILED"]

    def test_of_one_backend(self, settings):
        backend = {
            "BACKEND": "robust_queue.backend.RobustQueueBackend",
            "OPTIONS": {"TASK_DEFAULTS": {"max_attempts": 2, "backoff": [1]}},
        }
        settings.TASKS = {"default": backend}
        tasks.declare_nothing.enqueue()
        assert [run().status for _ in range(2)] == ["READY", "FAILED"]


def test_a_result_that_is_kept_for_no_time_leaves_no_trace():
    result = tasks.leave_no_trace.enqueue()
    assert run().status == "SUCCESSFUL"
    assert states() == {}
    assert not Job.objects.filter(pk=result.id).exists()
