"""What every store promises about further attempts."""

from datetime import timedelta
from uuid import uuid4

import pytest

from robust_queue.models import (
    Attempt,
    FailedExecution,
    ReadyExecution,
    ScheduledExecution,
)
from tests.stores import test_contract as contract
from tests.stores.test_contract import NOW, a_job, failure, ids, success, take
from tests.support.invariants import states

pytestmark = pytest.mark.django_db

store = contract.store

LATER = NOW + timedelta(minutes=5)


def again(claim, **changes):
    return failure(claim, **{"retry_at": LATER, **changes})


def rank(alias, priority):
    return -priority


class TestSettlingForAnotherAttempt:
    def test_the_attempt_is_kept_and_the_job_waits(self, store):
        store.insert([job := a_job(queue_name="q", priority=3, rank=-3)])
        (claim,) = take(store)
        assert store.settle([again(claim, message="päng")]) == {job.id}
        assert states() == {job.id: "scheduled"}
        row = ScheduledExecution.objects.get()
        assert (row.queue_name, row.priority, row.attempts) == ("q", -3, 1)
        assert row.created_at == NOW + timedelta(seconds=1)
        assert row.scheduled_at == LATER

    def test_every_column_of_the_attempt_arrives(self, store):
        store.insert([job := a_job()])
        (claim,) = take(store)
        store.settle([outcome := again(claim, message="päng")])
        row = Attempt.objects.get()
        assert (row.job_id, row.attempts) == (job.id, 1)
        for name in ("worker_id", "started_at", "finished_at"):
            assert getattr(row, name) == getattr(outcome, name)
        for name in ("exception_class", "message", "traceback"):
            assert getattr(row, name) == getattr(outcome, name)

    def test_attempts_are_counted_on(self, store):
        store.insert([job := a_job()])
        for attempt in (1, 2, 3):
            (claim,) = take(store)
            assert claim.attempts == attempt
            store.settle([again(claim)])
            assert store.dispatch(limit=10, now=LATER).moved == 1
        (claim,) = take(store)
        store.settle([failure(claim)])
        assert list(Attempt.objects.values_list("attempts", flat=True)) == [1, 2, 3]
        assert FailedExecution.objects.get().attempts == 4
        assert states() == {job.id: "failed"}

    def test_another_token_changes_nothing(self, store):
        store.insert([job := a_job()])
        (claim,) = take(store)
        assert store.settle([again(claim, token=uuid4())]) == set()
        assert states() == {job.id: "claimed"}
        assert not Attempt.objects.exists()

    def test_a_claim_that_was_given_back_changes_nothing(self, store):
        store.insert([job := a_job()])
        (claim,) = take(store)
        store.release([claim], now=NOW)
        assert store.settle([again(claim)]) == set()
        assert states() == {job.id: "ready"}
        assert not Attempt.objects.exists()

    def test_all_kinds_at_once(self, store):
        store.insert([a_job(queue_name=f"q{i}", rank=i) for i in range(10)])
        claims = take(store)
        kept, dropped, failed, retried, lost = (
            [claims[i], claims[i + 5]] for i in range(5)
        )
        outcomes = [
            *(success(c) for c in kept),
            *(success(c, keep=False) for c in dropped),
            *(failure(c) for c in failed),
            *(again(c) for c in retried),
            *(again(c, token=uuid4()) for c in lost),
        ]
        held = kept + dropped + failed + retried
        assert store.settle(outcomes[::-1]) == set(ids(held))
        assert states() == {
            **dict.fromkeys(ids(kept), "finished"),
            **dict.fromkeys(ids(failed), "failed"),
            **dict.fromkeys(ids(retried), "scheduled"),
            **dict.fromkeys(ids(lost), "claimed"),
        }
        assert set(Attempt.objects.values_list("job_id", flat=True)) == set(
            ids(retried)
        )
        waiting = ScheduledExecution.objects.values_list("queue_name", "priority")
        assert sorted(waiting) == [("q3", 3), ("q8", 8)]

    def test_a_success_that_is_not_kept_takes_its_past_along(self, store):
        store.insert([a_job()])
        (claim,) = take(store)
        store.settle([again(claim)])
        store.dispatch(limit=1, now=LATER)
        (claim,) = take(store)
        store.settle([success(claim, keep=False)])
        assert states() == {}
        assert not Attempt.objects.exists()

    def test_an_attempt_of_that_number_that_is_there_already(self, store):
        store.insert([job := a_job()])
        (claim,) = take(store)
        store.settle([again(claim, message="first")])
        ScheduledExecution.objects.update(attempts=0)
        store.dispatch(limit=1, now=LATER)
        (claim,) = take(store)
        assert store.settle([again(claim, message="second")]) == {job.id}
        assert Attempt.objects.get().message == "first"
        assert states() == {job.id: "scheduled"}


class TestRetry:
    def fail(self, store, *jobs):
        store.insert(jobs)
        store.settle([failure(claim, message="päng") for claim in take(store)])

    def test_a_failed_job_is_ready_again_as_it_was_asked_for(self, store):
        self.fail(store, job := a_job(queue_name="q", priority=7, rank=7))
        assert store.retry([job.id], rank=rank, now=LATER) == 1
        row = ReadyExecution.objects.get()
        assert (row.queue_name, row.priority, row.attempts) == ("q", -7, 1)
        assert row.created_at == LATER
        assert states() == {job.id: "ready"}

    def test_the_failure_is_kept_as_an_earlier_attempt(self, store):
        self.fail(store, job := a_job())
        before = FailedExecution.objects.values().get()
        store.retry([job.id], rank=rank, now=LATER)
        kept = Attempt.objects.values().get()
        del kept["id"]
        assert kept == before

    def test_attempts_are_counted_on(self, store):
        self.fail(store, job := a_job())
        store.retry([job.id], rank=rank, now=LATER)
        assert [claim.attempts for claim in take(store)] == [2]

    def test_only_what_has_failed(self, store):
        jobs = [a_job() for _ in range(4)]
        store.insert(jobs)
        ready, done, failed = jobs[3], *take(store, limit=2)
        store.settle([success(done), failure(failed)])
        (claimed,) = take(store, limit=1)
        assert store.retry([*ids(jobs), uuid4()], rank=rank, now=LATER) == 1
        assert states() == {
            ready.id: "ready",
            done.job_id: "finished",
            failed.job_id: "ready",
            claimed.job_id: "claimed",
        }

    def test_an_attempt_of_that_number_that_is_there_already(self, store):
        self.fail(store, job := a_job())
        Attempt.objects.create(
            job_id=job.id, attempts=1, worker_id="w", started_at=NOW, finished_at=NOW
        )
        assert store.retry([job.id], rank=rank, now=LATER) == 1
        assert Attempt.objects.get().worker_id == "w"
        assert states() == {job.id: "ready"}

    def test_nothing_is_nothing(self, store):
        assert store.retry([], rank=rank, now=LATER) == 0
        assert store.retry([uuid4()], rank=rank, now=LATER) == 0
