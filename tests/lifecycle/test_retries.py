"""Tasks that are tried again by themselves."""

from datetime import timedelta
from unittest import mock

import pytest
from django.db import OperationalError
from django.utils import timezone

from robust_queue.compat import signals
from robust_queue.lifecycle import results
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.release import release
from robust_queue.models import Attempt, Job, ReadyExecution, ScheduledExecution
from robust_queue.signals import attempt_failed
from robust_queue.testing import drain
from tests.support.invariants import state_of, states
from tests.support.processes import a_process
from tests.testapp.tasks import (
    explode,
    fail_at_once_again,
    see_no_use_in_trying,
    stumble_over_its_backoff,
    succeed_at_last,
)

pytestmark = pytest.mark.django_db

BACKEND = "robust_queue.backend.RobustQueueBackend"


def run():
    """One attempt, whenever it is due."""
    dispatch_due("default", now=timezone.now() + timedelta(days=1))
    (result,) = drain()
    return result


class TestAttempts:
    def test_until_it_succeeds(self, performed):
        result = succeed_at_last.enqueue()
        assert [run().status for _ in range(3)] == ["READY", "READY", "SUCCESSFUL"]
        assert performed == [("attempt", 1), ("attempt", 2), ("attempt", 3)]
        result.refresh()
        assert (result.status, result.return_value) == ("SUCCESSFUL", 3)
        assert [e.exception_class for e in result.errors] == [OSError, OSError]
        assert (result.attempts, len(result.worker_ids)) == (3, 3)

    def test_until_the_attempts_are_used_up(self, performed):
        result = succeed_at_last.enqueue(attempt=99)
        assert [run().status for _ in range(3)] == ["READY", "READY", "FAILED"]
        assert state_of(result) == "failed"
        assert len(performed) == 3
        result.refresh()
        assert (result.attempts, len(result.errors)) == (3, 3)
        assert list(Attempt.objects.values_list("attempts", flat=True)) == [1, 2]

    def test_what_is_told_while_it_waits(self):
        result = succeed_at_last.enqueue()
        told = run()
        result.refresh()
        assert result == told
        assert (result.status, result.finished_at) == ("READY", None)
        assert result.started_at == result.last_attempted_at
        assert (result.attempts, len(result.worker_ids)) == (1, 1)
        assert result.errors[0].traceback.endswith("OSError: attempt 1\nof many\n")

    def test_what_is_told_while_it_runs_again(self):
        result = succeed_at_last.enqueue()
        first = run()
        dispatch_due("default", now=timezone.now() + timedelta(days=1))
        claim("default", process_id=a_process())
        result.refresh()
        assert (result.status, result.attempts) == ("RUNNING", 2)
        assert result.worker_ids[0] == first.worker_ids[0]
        assert result.started_at == first.started_at < result.last_attempted_at

    def test_the_first_attempt_is_when_it_started(self):
        result = succeed_at_last.enqueue()
        first, _, last = run(), run(), run()
        result.refresh()
        assert result == last
        assert result.started_at == first.started_at
        assert result.last_attempted_at > result.started_at

    def test_a_task_that_declares_nothing_has_one(self):
        explode.enqueue()
        assert run().status == "FAILED"

    def test_a_job_whose_task_is_gone_has_one(self):
        succeed_at_last.enqueue()
        Job.objects.update(task_path="shop.tasks.gone")
        assert run().status == "FAILED"

    def test_an_unreadable_argument_is_a_failed_attempt(self):
        succeed_at_last.enqueue()
        Job.objects.update(arguments="nonsense")
        assert [run().status for _ in range(3)] == ["READY", "READY", "FAILED"]

    def test_nothing_is_kept_of_a_success_that_is_not_to_be_kept(self, settings):
        settings.ROBUST_QUEUE = {"preserve_finished_jobs": False}
        succeed_at_last.enqueue(attempt=2)
        assert [run().status for _ in range(2)] == ["READY", "SUCCESSFUL"]
        assert states() == {}
        assert not Attempt.objects.exists()


class TestBackoff:
    def test_it_says_when(self):
        result = succeed_at_last.enqueue()
        for attempt in (1, 2):
            run()
            ended = Attempt.objects.get(job_id=result.id, attempts=attempt).finished_at
            row = ScheduledExecution.objects.get()
            assert row.scheduled_at == ended + timedelta(minutes=attempt)
            assert (row.created_at, row.attempts) == (ended, attempt)

    def test_the_job_keeps_its_queue_and_its_rank(self, settings):
        options = {"PRIORITY_ORDER": "largest_first"}
        settings.TASKS = {
            "default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": options}
        }
        succeed_at_last.using(queue_name="q", priority=7).enqueue()
        run()
        row = ScheduledExecution.objects.get()
        assert (row.queue_name, row.priority) == ("q", -7)

    def test_it_may_see_no_use(self):
        result = see_no_use_in_trying.enqueue()
        assert run().status == "FAILED"
        assert state_of(result) == "failed"

    def test_one_that_raises_does_not_lose_the_job(self, caplog):
        result = stumble_over_its_backoff.enqueue()
        assert run().status == "READY"
        assert state_of(result) == "scheduled"
        assert "backoff of tests.testapp.tasks.stumble_over_its_backoff" in caplog.text
        waits = ScheduledExecution.objects.get()
        assert waits.scheduled_at > waits.created_at + timedelta(seconds=17)


class TestTold:
    @pytest.fixture
    def finished(self):
        told = []

        def remember(sender, task_result, **kwargs):
            told.append(task_result.status)

        signals.task_finished.connect(remember)
        yield told
        signals.task_finished.disconnect(remember)

    def test_a_task_is_finished_once(self, finished):
        succeed_at_last.enqueue()
        run(), run()
        assert finished == []
        run()
        assert finished == ["SUCCESSFUL"]

    def test_each_attempt_starts(self):
        told = []

        def remember(sender, task_result, **kwargs):
            told.append(task_result.attempts)

        signals.task_started.connect(remember)
        succeed_at_last.enqueue()
        run(), run()
        signals.task_started.disconnect(remember)
        assert told == [1, 2]

    def test_the_log_tells_of_each_attempt_in_one_line(self, caplog):
        result = succeed_at_last.enqueue()
        run()
        (line,) = [r for r in caplog.records if r.levelname == "WARNING"]
        at = ScheduledExecution.objects.get().scheduled_at
        begins = "tests.testapp.tasks.succeed_at_last failed with OSError: "
        assert line.getMessage().startswith(begins + "attempt 1 of many in ")
        assert line.getMessage().endswith(
            f"; next attempt at {at.isoformat(' ', 'seconds')} "
            f"(job {result.id}, queue default, attempt 1 of 3)"
        )
        assert line.exc_info is None

    def test_a_signal_tells_of_each_attempt(self):
        told = []

        def remember(sender, **facts):
            told.append(facts)

        attempt_failed.connect(remember)
        result = succeed_at_last.enqueue()
        run()
        attempt_failed.disconnect(remember)
        (facts,) = told
        assert facts["task_result"].id == result.id
        assert facts["reason"] == "OSError: attempt 1 of many"
        assert facts["retry_at"] == ScheduledExecution.objects.get().scheduled_at
        assert facts["duration"] >= 0


class TestDrain:
    def test_what_waits_for_its_next_attempt_is_not_run(self, performed):
        succeed_at_last.enqueue()
        assert len(drain()) == 1
        assert drain() == []
        assert len(performed) == 1

    def test_when_the_clock_has_moved_on(self):
        succeed_at_last.enqueue(attempt=2)
        drain()
        later = timezone.now() + timedelta(hours=1)
        with mock.patch("django.utils.timezone.now", return_value=later):
            assert [r.return_value for r in drain()] == [2]

    def test_what_is_to_be_tried_again_at_once_is(self):
        fail_at_once_again.enqueue()
        assert [r.status for r in drain()] == ["READY", "READY", "FAILED"]


def test_an_error_before_the_task_began_is_not_its_failure(monkeypatch, performed):
    succeed_at_last.enqueue()
    run()
    dispatch_due("default", now=timezone.now() + timedelta(days=1))
    (held,) = claim("default", process_id=a_process())

    def gone(*args):
        raise OperationalError("the server is gone")

    with monkeypatch.context() as patched:
        patched.setattr(results, "earlier_attempts", gone)
        with pytest.raises(OperationalError):
            perform(held, database="default", worker_id="w")
    assert len(performed) == 1
    assert release("default", [held]) == {held.job_id}
    assert ReadyExecution.objects.get().attempts == 1
