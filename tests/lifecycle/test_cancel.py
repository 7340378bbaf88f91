"""Cancelling: what waits ends at once, what runs is asked to end."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from robust_queue.compat import signals
from robust_queue.lifecycle.cancel import asked_for, cancel, cancel_all, sweep
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.retry import retry
from robust_queue.lifecycle.settle import settle
from robust_queue.models import Cancellation, FailedExecution, FinishedExecution
from robust_queue.testing import drain
from tests.support.invariants import state_of, states
from tests.support.processes import a_process
from tests.support.threads import in_thread, in_threads, started, uncommitted
from tests.testapp.tasks import add, explode, note, succeed_at_last

HOUR = timedelta(hours=1)

pytestmark = pytest.mark.django_db(transaction=True)


def take(limit=1):
    return claim("default", process_id=a_process(), limit=limit)


def run(claimed):
    return perform(claimed, database="default", worker_id="worker").outcome


def grow_old():
    """As if all requests had been made a while ago."""
    Cancellation.objects.update(requested_at=timezone.now() - HOUR)


class TestWaiting:
    @pytest.mark.parametrize("run_after", [None, HOUR])
    def test_it_ends_at_once(self, run_after):
        result = note.using(run_after=run_after).enqueue()
        assert cancel("default", result.id) is True
        assert state_of(result) == "failed"
        assert FailedExecution.objects.get().kind == "cancelled"
        assert drain() == []

    def test_what_its_result_tells(self):
        result = note.enqueue()
        cancel("default", result.id)
        result.refresh()
        assert result.status == "FAILED"
        assert result.errors[0].exception_class_path == (
            "robust_queue.exceptions.TaskCancelled"
        )
        assert (result.started_at, result.attempts) == (None, 0)
        assert result.finished_at is not None

    def test_it_is_announced(self):
        told = []

        def receive(task_result, **kwargs):
            told.append(task_result.id)

        result = note.enqueue()
        signals.task_finished.connect(receive)
        try:
            cancel("default", result.id)
        finally:
            signals.task_finished.disconnect(receive)
        assert told == [result.id]

    def test_an_operator_may_take_it_back(self):
        result = add.enqueue(1)
        cancel("default", result.id)
        assert retry("default", result.id)
        (done,) = drain()
        assert (done.status, done.attempts) == ("SUCCESSFUL", 1)

    def test_between_two_attempts(self):
        result = succeed_at_last.enqueue()
        drain()
        assert cancel("default", result.id)
        result.refresh()
        assert (result.status, result.attempts) == ("FAILED", 1)
        assert len(result.errors) == 2


class TestRunning:
    def test_its_worker_is_asked(self):
        result = note.enqueue()
        (claimed,) = take()
        assert cancel("default", result.id) is True
        assert cancel("default", result.id) is True, "to ask again is no harm"
        assert state_of(result) == "claimed"
        assert asked_for("default") == {claimed.job_id}

    def test_one_that_ends_all_the_same(self):
        result = note.enqueue()
        (claimed,) = take()
        cancel("default", result.id)
        settle("default", [run(claimed)])
        assert state_of(result) == "finished"
        assert sweep("default") == 0, "the worker may still hear of it"
        grow_old()
        assert sweep("default") == 1
        assert not Cancellation.objects.exists()
        assert state_of(result) == "finished"

    def test_one_that_goes_back_to_its_queue_is_met_there(self):
        result = note.enqueue()
        claims = take()
        cancel("default", result.id)
        release("default", claims)
        grow_old()
        sweep("default")
        assert state_of(result) == "failed"
        assert not Cancellation.objects.exists()

    def test_one_that_is_to_be_tried_again_is_not(self):
        result = succeed_at_last.enqueue()
        (claimed,) = take()
        cancel("default", result.id)
        settle("default", [run(claimed)])
        assert state_of(result) == "scheduled"
        grow_old()
        sweep("default")
        assert state_of(result) == "failed"

    def test_one_that_runs_on_is_still_asked(self):
        note.enqueue()
        (claimed,) = take()
        cancel("default", claimed.job_id)
        grow_old()
        assert sweep("default") == 0
        assert asked_for("default") == {claimed.job_id}

    def test_a_retry_forgets_the_request(self):
        result = explode.enqueue()
        (claimed,) = take()
        cancel("default", result.id)
        settle("default", [run(claimed)])
        retry("default", result.id)
        grow_old()
        sweep("default")
        assert state_of(result) == "ready"


def test_what_has_ended_or_never_was():
    done, failed = add.enqueue(1), explode.enqueue()
    drain()
    for job_id in (done.id, failed.id, uuid4()):
        assert cancel("default", job_id) is False
    assert not Cancellation.objects.exists()


def test_many_at_once():
    results = [note.enqueue() for _ in range(5)]
    take(2)
    assert cancel_all("default", [each.id for each in results]) == (3, 2)
    assert cancel_all("default", []) == (0, 0)


# ── Races ──────────────────────────────────────────────────────────────────────


def test_a_cancel_and_a_claim_have_one_winner():
    for _ in range(20):
        result = note.enqueue()
        process = a_process()
        cancelled, claims = in_threads(
            [
                lambda result=result: cancel("default", result.id),
                lambda process=process: claim("default", process_id=process),
            ]
        )
        assert cancelled is True
        # Either it never runs, or its worker is asked.
        if claims:
            assert state_of(result) == "claimed"
            assert asked_for("default") >= {claims[0].job_id}
        else:
            assert state_of(result) == "failed"


def test_a_claim_does_not_take_what_is_being_cancelled():
    if _is_sqlite():
        pytest.skip("SQLite has one writer at a time")
    result = note.enqueue()
    with uncommitted(cancel, "default", result.id):
        assert in_thread(take) == []
    assert state_of(result) == "failed"


def test_a_cancel_waits_for_a_claim_and_asks_its_worker():
    if _is_sqlite():
        pytest.skip("SQLite has one writer at a time")
    result = note.enqueue()
    with uncommitted(take):
        asking = started(cancel, "default", result.id)
    assert asking.result(30) is True
    assert state_of(result) == "claimed"
    assert len(asked_for("default")) == 1


def test_a_cancel_and_a_finish_have_one_winner():
    for _ in range(20):
        result = note.enqueue()
        (claimed,) = take()
        outcome = run(claimed)
        in_threads(
            [
                lambda result=result: cancel("default", result.id),
                lambda outcome=outcome: settle("default", [outcome]),
            ]
        )
        assert state_of(result) == "finished"
    grow_old()
    sweep("default")
    assert set(states().values()) == {"finished"}
    assert FinishedExecution.objects.count() == 20


def _is_sqlite():
    return connection.vendor == "sqlite"
