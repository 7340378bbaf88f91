"""Unique keys and two connections at once. Each test names the race."""

import threading
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from robust_queue import DuplicateTaskError, enqueue_all
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.retry import retry
from robust_queue.lifecycle.settle import settle
from robust_queue.lifecycle.unique_sweep import sweep
from robust_queue.models import Job, UniqueLock
from robust_queue.stores import conflicts
from robust_queue.testing import drain
from tests.support.invariants import state_of, states
from tests.support.lock_waits import blocked
from tests.support.outcomes import success
from tests.support.processes import a_process
from tests.support.threads import in_threads, started, uncommitted
from tests.testapp.models import Mark
from tests.testapp.unique_tasks import (
    count_marks,
    hourly,
    latest,
    once,
    once_and_failed,
    once_or_error,
)

pytestmark = pytest.mark.django_db(transaction=True)


def take():
    return claim("default", process_id=a_process(), queues=("*",), limit=10)


def holders():
    return {str(each) for each in UniqueLock.objects.values_list("job_id", flat=True)}


@contextmanager
def impatient(monkeypatch):
    """Whoever has to wait for a lock in this block gets an error instead."""
    monkeypatch.setattr(conflicts, "PATIENCE", -1)
    settings = {
        "postgresql": "SET lock_timeout = '300ms'",
        "mysql": "SET SESSION innodb_lock_wait_timeout = 1",
    }
    with connection.cursor() as cursor:
        cursor.execute(settings[connection.vendor])
    try:
        yield
    finally:
        connection.close()
        monkeypatch.undo()


class TestTwoEnqueuers:
    def test_of_many_one_makes_the_job(self):
        found = in_threads([lambda: once.enqueue(1).id] * 8)
        assert len(set(found)) == 1
        assert len(states()) == 1

    def test_one_of_them_raises_for_each_of_the_others(self):
        def enqueue():
            try:
                return once_or_error.enqueue(1).id
            except DuplicateTaskError as error:
                return error.result_id

        found = in_threads([enqueue] * 6)
        assert len(set(found)) == 1
        assert [str(each) for each in states()] == found[:1]

    @pytest.mark.usefixtures("row_locks")
    def test_the_second_waits_for_the_commit_of_the_first(self):
        with uncommitted(once.enqueue, 1) as first:
            second = blocked(started(once.enqueue, 1))
        assert second.result(30).id == first.id
        assert len(states()) == 1

    @pytest.mark.usefixtures("row_locks")
    def test_a_rollback_of_the_first_leaves_the_key_to_the_second(self):
        is_enqueued, leave = threading.Event(), threading.Event()

        def give_up():
            with transaction.atomic():
                once.enqueue(1)
                is_enqueued.set()
                assert leave.wait(30)
                transaction.set_rollback(True)

        first = started(give_up)
        assert is_enqueued.wait(30)
        second = blocked(started(once.enqueue, 1))
        leave.set()
        first.result(30)
        enqueued = second.result(30)
        assert list(states()) == [UUID(enqueued.id)]
        assert holders() == {enqueued.id}

    def test_of_many_who_find_an_expired_lock_one_takes_it_over(self):
        first = hourly.enqueue()
        UniqueLock.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

        def enqueue():
            with transaction.atomic():
                return hourly.enqueue().id

        (second,) = set(in_threads([enqueue] * 4))
        assert second != first.id
        assert holders() == {second}

    def test_of_many_who_replace_each_other_one_is_left(self):
        latest.enqueue(7, "first")
        in_threads([lambda: latest.enqueue(7, "another")] * 6)
        (left,) = states()
        assert holders() == {str(left)}

    @pytest.mark.parametrize("is_callers", [True, False])
    def test_bulks_in_opposite_orders_never_wait_for_each_other(self, is_callers):
        def bulk(order):
            with transaction.atomic() if is_callers else nullcontext():
                return [each.id for each in enqueue_all(map(once.bind, order))]

        forwards, backwards = range(40), range(39, -1, -1)
        for _ in range(5):
            ids, others = in_threads([lambda: bulk(forwards), lambda: bulk(backwards)])
            assert ids == others[::-1]
            assert len(states()) == 40
            drain()
            Job.objects.db_manager().clear_finished_in_batches(
                finished_before=timezone.now() + timedelta(days=1)
            )


@pytest.mark.usefixtures("row_locks")
class TestEnqueueAndFinish:
    def test_an_enqueue_waits_for_the_end_and_makes_a_new_job(self):
        first = once.enqueue(1)
        outcomes = [success(each) for each in take()]
        with uncommitted(settle, "default", outcomes):
            racing = blocked(started(once.enqueue, 1))
        second = racing.result(30)
        assert second.id != first.id
        assert holders() == {second.id}
        assert state_of(second) == "ready"

    def test_the_end_waits_for_no_request_that_was_told_of_the_job(self, monkeypatch):
        """A settle that waited would hold up every other outcome of its worker."""
        first = once.enqueue(1)
        outcomes = [success(each) for each in take()]
        with uncommitted(once.enqueue, 1) as second, impatient(monkeypatch):
            assert second.id == first.id
            assert len(settle("default", outcomes)) == 1
        assert holders() == set()

    def test_an_enqueue_waits_for_a_discard(self):
        first = once.enqueue(1)
        with uncommitted(discard, "default", first.id):
            racing = blocked(started(once.enqueue, 1))
        second = racing.result(30)
        assert second.id != first.id
        assert list(states()) == [UUID(second.id)]


@pytest.mark.usefixtures("row_locks")
class TestEnqueueAndStart:
    def test_a_job_begins_when_whoever_was_told_of_it_has_committed(
        self, performed, monkeypatch
    ):
        """Else it would not see for what it was enqueued once more."""

        def request():
            Mark.objects.create(label="new", pid=1)
            return count_marks.enqueue()

        def run():
            return perform(claimed, database="default", worker_id="worker")

        first = count_marks.enqueue()
        (claimed,) = take()
        with uncommitted(request) as told:
            assert told.id == first.id
            with impatient(monkeypatch), pytest.raises(OperationalError):
                run()
        run()
        assert performed == [1]

    def test_an_end_without_a_beginning_waits_for_nobody(self, monkeypatch):
        """It was cancelled, say. All other outcomes of its worker would wait too."""
        first = count_marks.enqueue()
        outcomes = [success(each) for each in take()]
        with uncommitted(count_marks.enqueue), impatient(monkeypatch):
            assert len(settle("default", outcomes)) == 1
        second = count_marks.enqueue()
        assert second.id != first.id
        assert holders() == {second.id}

    def test_whoever_comes_behind_its_start_makes_a_new_job(self, performed):
        first = count_marks.enqueue()
        (claimed,) = take()
        key = claimed.unique_key
        with uncommitted(UniqueLock.objects.filter(key=key).delete):
            racing = blocked(started(count_marks.enqueue))
        assert racing.result(30).id != first.id
        assert len(states()) == 2


@pytest.mark.usefixtures("row_locks")
class TestReplaceAndClaim:
    def test_who_claims_it_first_has_it(self):
        first = latest.enqueue(7, "old")
        with uncommitted(take):
            racing = blocked(started(latest.enqueue, 7, "new"))
        second = racing.result(30)
        assert (second.id, second.status) == (first.id, "RUNNING")
        assert list(states().values()) == ["claimed"]

    def test_who_replaces_it_first_has_it(self):
        latest.enqueue(7, "old")
        with uncommitted(latest.enqueue, 7, "new") as second:
            assert take() == []
        assert [str(each.job_id) for each in take()] == [second.id]

    def test_many_of_both(self):
        for _ in range(10):
            latest.enqueue(7, "old")
            enqueued, claims = in_threads([lambda: latest.enqueue(7, "new").id, take])
            claims += take()
            assert [str(each.job_id) for each in claims] == [enqueued]
            settle("default", [success(each) for each in claims])
            assert not UniqueLock.objects.exists()


@pytest.mark.usefixtures("row_locks")
class TestRetryAndEnqueue:
    def failed(self):
        result = once_and_failed.enqueue()
        drain()
        return result

    def test_a_retry_waits_for_an_enqueue_and_gives_way(self):
        failed = self.failed()
        with uncommitted(once_and_failed.enqueue) as second:
            racing = blocked(started(retry, "default", failed.id))
        assert racing.result(30) is False
        assert holders() == {second.id}
        assert state_of(failed) == "failed"

    def test_an_enqueue_waits_for_a_retry_and_is_told_of_it(self):
        failed = self.failed()
        with uncommitted(retry, "default", failed.id):
            racing = blocked(started(once_and_failed.enqueue))
        assert racing.result(30).id == failed.id
        assert len(states()) == 1

    def test_a_sweep_passes_over_what_a_retry_has_in_hand(self):
        failed = self.failed()
        key = Job.objects.get().unique_key
        UniqueLock.objects.create(key=key, job_id=failed.id)
        with uncommitted(retry, "default", failed.id):
            assert sweep("default") == 0
        assert sweep("default") == 0
        assert holders() == {failed.id}
