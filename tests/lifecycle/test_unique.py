"""Unique tasks: who holds a key, for how long, and what becomes of the others."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.utils import timezone

import robust_queue
from robust_queue import DuplicateTaskError, enqueue_all
from robust_queue.exceptions import UnreplaceableError
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.recover import claims_of, give_up
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.retry import retry_matching
from robust_queue.lifecycle.selection import Filter
from robust_queue.lifecycle.settle import settle
from robust_queue.models import Job, ReadyExecution, UniqueLock
from robust_queue.processes import ProcessExitError
from robust_queue.stores import locking
from robust_queue.testing import drain
from tests.support import rows
from tests.support.invariants import state_of, states
from tests.support.outcomes import success
from tests.support.processes import a_process
from tests.testapp.tasks import note
from tests.testapp.unique_tasks import (
    hourly,
    hourly_without_trace,
    keyed,
    latest,
    latest_of_the_hour,
    once,
    once_and_failed,
    once_and_snoozed,
    once_but_tried_twice,
    once_or_discarded,
    once_or_error,
    once_without_trace,
    until_started,
)

pytestmark = pytest.mark.django_db

SOON = timedelta(hours=1)


def take():
    return claim("default", process_id=a_process(), queues=("*",), limit=10)


def holders():
    return {str(each) for each in UniqueLock.objects.values_list("job_id", flat=True)}


class TestReturn:
    def test_the_second_call_gets_the_result_of_the_first(self):
        first = once.enqueue(1)
        second = once.enqueue(value=1)
        assert second.id == first.id
        assert second.status == "READY"
        assert Job.objects.count() == 1
        assert holders() == {first.id}

    def test_other_arguments_are_other_work(self):
        assert once.enqueue(1).id != once.enqueue(2).id

    def test_the_result_tells_that_it_runs(self):
        first = once.enqueue(1)
        take()
        second = once.enqueue(1)
        assert (second.id, second.status) == (first.id, "RUNNING")

    def test_nobody_is_told_of_an_enqueue_that_was_none(self, monkeypatch):
        told = []
        announce = robust_queue.lifecycle.enqueue.announce
        monkeypatch.setattr(announce, "is_heard", lambda *args, **kwargs: True)
        monkeypatch.setattr(announce, "enqueued", told.append)
        once.enqueue(1)
        once.enqueue(1)
        assert len(told) == 1

    def test_a_scheduled_job_holds_its_key_as_well(self):
        first = once.using(run_after=SOON).enqueue(1)
        assert once.enqueue(1).id == first.id
        assert state_of(first) == "scheduled"

    def test_a_blocked_job_holds_its_key_as_well(self):
        first = once.enqueue(1)
        ReadyExecution.objects.all().delete()
        rows.blocked(of=Job.objects.get())
        assert once.enqueue(1).id == first.id

    def test_a_call_without_a_key_is_not_unique(self):
        assert keyed.enqueue(None).id != keyed.enqueue(None).id
        assert not UniqueLock.objects.exists()


class TestEnds:
    def test_finished(self):
        first = once.enqueue(1)
        drain()
        assert not UniqueLock.objects.exists()
        assert once.enqueue(1).id != first.id

    def test_finished_without_trace(self):
        first = once_without_trace.enqueue()
        drain()
        assert not UniqueLock.objects.exists()
        assert once_without_trace.enqueue().id != first.id

    def test_failed_for_good(self):
        first = once_and_failed.enqueue()
        drain()
        assert not UniqueLock.objects.exists()
        assert once_and_failed.enqueue().id != first.id

    def test_not_while_it_waits_for_another_attempt(self):
        first = once_but_tried_twice.enqueue()
        drain()
        assert state_of(first) == "scheduled"
        assert once_but_tried_twice.enqueue().id == first.id

    def test_not_while_it_snoozes(self):
        first = once_and_snoozed.enqueue()
        drain()
        assert once_and_snoozed.enqueue().id == first.id

    def test_not_when_it_is_given_back(self):
        first = once.enqueue(1)
        release("default", take())
        assert once.enqueue(1).id == first.id

    def test_cancelled(self):
        first = once.enqueue(1)
        assert robust_queue.cancel(first)
        assert not UniqueLock.objects.exists()
        assert once.enqueue(1).id != first.id

    def test_discarded(self):
        assert robust_queue.discard(once.enqueue(1))
        assert not UniqueLock.objects.exists()

    def test_a_batch_lets_go_of_its_own_keys_only(self):
        enqueue_all([once.bind(i) for i in range(5)] + [note.bind()])
        claims = take()
        ours, others = claims[:3], claims[3:]
        settle("default", [success(each) for each in ours])
        assert holders() == {str(each.job_id) for each in others if each.unique_key}
        assert UniqueLock.objects.count() == 2

    def test_a_worker_that_lost_its_claim_lets_go_of_nothing(self):
        first = once.enqueue(1)
        (mine,) = take()
        release("default", [mine])
        assert settle("default", [success(mine)]) == set()
        assert holders() == {first.id}

    def test_its_process_died(self):
        once.enqueue(1)
        (mine,) = take()
        crashed = claims_of("default", mine.process_id)
        assert give_up("default", crashed, ProcessExitError("gone"), worker_id="w")
        assert not UniqueLock.objects.exists()

    def test_a_key_that_somebody_else_has_by_now(self):
        """Somebody deletes a lock by hand, and another job takes the key."""
        once.enqueue(1)
        (mine,) = take()
        UniqueLock.objects.all().delete()
        second = once.enqueue(1)
        settle("default", [success(mine)])
        assert holders() == {second.id}

    def test_a_lock_whose_job_is_gone_is_taken_over(self):
        first = once.enqueue(1)
        ReadyExecution.objects.all().delete()
        Job.objects.all().delete()
        second = once.enqueue(1)
        assert second.id != first.id
        assert holders() == {second.id}
        assert [each.id for each in drain()] == [second.id]

    def test_a_lock_whose_job_has_ended_is_taken_over(self):
        first = once.enqueue(1)
        lock = UniqueLock.objects.get()
        drain()
        lock.save(force_insert=True)
        second = once.enqueue(1)
        assert second.id != first.id
        assert holders() == {second.id}


class TestUntilStarted:
    def test_the_key_is_free_before_the_code_runs(self, performed):
        first = until_started.enqueue()
        assert until_started.enqueue().id == first.id
        drain()
        assert performed == [0]

    def test_not_when_it_was_only_claimed(self):
        first = until_started.enqueue()
        claims = take()
        assert until_started.enqueue().id == first.id
        release("default", claims)
        assert until_started.enqueue().id == first.id

    def test_a_task_that_is_not_known_lets_go_at_its_end(self):
        until_started.enqueue()
        Job.objects.update(task_path="gone.task")
        drain()
        assert not UniqueLock.objects.exists()


class TestPeriods:
    def test_it_goes_on_whatever_becomes_of_the_job(self):
        first = hourly.enqueue()
        drain()
        second = hourly.enqueue()
        assert (second.id, second.status) == (first.id, "SUCCESSFUL")

    @pytest.mark.parametrize("end", [robust_queue.cancel, robust_queue.discard])
    def test_nor_does_an_operator_end_it(self, end):
        first = hourly.enqueue()
        assert end(first)
        assert hourly.enqueue().id == first.id

    def test_its_job_may_be_gone(self):
        first = hourly_without_trace.enqueue()
        drain()
        assert hourly_without_trace.enqueue().id == first.id
        assert states() == {}

    def test_when_it_is_over_the_next_one_has_the_key(self):
        first = hourly.enqueue()
        past = timezone.now() - timedelta(seconds=1)
        UniqueLock.objects.update(expires_at=past)
        second = hourly.enqueue()
        assert second.id != first.id
        assert Job.objects.count() == 2
        lock = UniqueLock.objects.get()
        assert str(lock.job_id) == second.id
        assert lock.expires_at - second.enqueued_at == timedelta(hours=1)


class TestDiscard:
    def test_a_job_is_stored_that_has_failed(self):
        first = once_or_discarded.enqueue(1)
        second = once_or_discarded.enqueue(1)
        assert second.id != first.id
        assert second.status == "FAILED"
        (error,) = second.errors
        assert error.exception_class_path == "robust_queue.exceptions.TaskDiscarded"
        lock = UniqueLock.objects.get()
        assert str(lock.job_id) == first.id
        failure = Job.objects.get(pk=second.id).failed_execution
        assert failure.kind == "discarded"
        assert first.id in failure.message
        assert lock.key in failure.message
        assert once_or_discarded.get_result(second.id) == second

    def test_only_the_first_runs(self, performed):
        for _ in range(3):
            once_or_discarded.enqueue(1)
        drain()
        assert performed == [1]


class TestReplace:
    @pytest.mark.parametrize("run_after", [None, SOON])
    def test_the_one_that_waits_goes(self, run_after, performed):
        first = latest.using(run_after=run_after).enqueue(7, "old")
        second = latest.enqueue(7, "new")
        assert second.id != first.id
        assert list(states()) == [UUID(second.id)]
        assert holders() == {second.id}
        drain()
        assert performed == ["new"]

    def test_one_that_is_blocked_goes_too(self):
        latest.enqueue(7, "old")
        ReadyExecution.objects.all().delete()
        rows.blocked(of=Job.objects.get())
        second = latest.enqueue(7, "new")
        assert list(states()) == [UUID(second.id)]

    def test_one_that_runs_stays(self):
        first = latest.enqueue(7, "old")
        take()
        second = latest.enqueue(7, "new")
        assert (second.id, second.status) == (first.id, "RUNNING")
        assert Job.objects.count() == 1

    def test_others_stay(self):
        other = latest.enqueue(8)
        latest.enqueue(7)
        latest.enqueue(7)
        assert len(states()) == 2
        assert state_of(other) == "ready"

    def test_a_period_begins_anew(self):
        latest_of_the_hour.enqueue(7, "old")
        UniqueLock.objects.update(expires_at=timezone.now() + timedelta(minutes=1))
        second = latest_of_the_hour.enqueue(7, "new")
        lock = UniqueLock.objects.get()
        assert str(lock.job_id) == second.id
        assert lock.expires_at - second.enqueued_at == timedelta(hours=1)
        assert list(states()) == [UUID(second.id)]


class TestRaise:
    def test_the_holder_is_named(self):
        first = once_or_error.enqueue(1)
        with pytest.raises(DuplicateTaskError, match=first.id) as caught:
            once_or_error.enqueue(1)
        assert caught.value.result_id == first.id
        assert Job.objects.count() == 1

    def test_nothing_is_left_of_a_bulk(self):
        first = once_or_error.enqueue(1)
        with pytest.raises(DuplicateTaskError):
            enqueue_all([note.bind(), once_or_error.bind(2), once_or_error.bind(1)])
        assert list(states()) == [UUID(first.id)]
        assert holders() == {first.id}

    def test_the_transaction_of_the_caller_goes_on(self):
        first = once_or_error.enqueue(1)
        with transaction.atomic():
            before = note.enqueue()
            with pytest.raises(DuplicateTaskError):
                enqueue_all([once_or_error.bind(2), once_or_error.bind(1)])
            after = note.enqueue()
        assert set(states()) == {UUID(each.id) for each in (first, before, after)}

    def test_twice_in_one_call(self):
        with pytest.raises(DuplicateTaskError) as caught:
            enqueue_all([once_or_error.bind(1), once_or_error.bind(1)])
        assert caught.value.result_id is None
        assert states() == {}
        assert not UniqueLock.objects.exists()


class TestBulk:
    def test_the_first_of_several_has_the_key(self, performed):
        calls = [once.bind(1), note.bind(), once.bind(2), once.bind(1)]
        first, _, _, again = enqueue_all(calls)
        assert again.id == first.id
        assert len(states()) == 3
        drain()
        assert sorted(each for each in performed if isinstance(each, int)) == [1, 2]

    def test_all_of_them_are_there_already(self):
        before = [once.enqueue(i) for i in range(3)]
        after = enqueue_all(once.bind(i) for i in range(3))
        assert [each.id for each in after] == [each.id for each in before]
        assert Job.objects.count() == 3

    def test_more_than_a_statement_has_room_for(self, monkeypatch):
        monkeypatch.setattr(locking, "AT_ONCE", 3)
        before = [once.enqueue(i) for i in range(0, 10, 2)]
        after = enqueue_all(once.bind(i) for i in range(10))
        assert [each.id for each in after[::2]] == [each.id for each in before]
        assert Job.objects.count() == UniqueLock.objects.count() == 10

    def test_a_backend_gives_the_same_answers(self):
        before = once.enqueue(1)
        found = once.get_backend().enqueue_all([once.bind(1), once.bind(2)])
        assert found[0].id == before.id
        assert len(states()) == 2

    def test_discarded_ones_among_others(self):
        calls = [once_or_discarded.bind(1), once_or_discarded.bind(1)]
        first, second = enqueue_all(calls)
        assert (first.status, second.status) == ("READY", "FAILED")
        assert first.id in Job.objects.get(pk=second.id).failed_execution.message

    def test_to_replace_is_not_meant_for_one_call(self):
        first, second = enqueue_all([latest.bind(7, "a"), latest.bind(7, "b")])
        assert first.id == second.id
        assert len(states()) == 1


class TestTransactions:
    def test_a_rollback_leaves_no_lock(self):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            once.enqueue(1)
            assert once.enqueue(1)
            raise ZeroDivisionError
        assert states() == {}
        assert not UniqueLock.objects.exists()


class TestRetry:
    def test_it_takes_the_key_again(self):
        failed = once_and_failed.enqueue()
        drain()
        assert robust_queue.retry(failed)
        assert once_and_failed.enqueue().id == failed.id
        drain()
        assert not UniqueLock.objects.exists()

    def test_it_is_passed_over_while_another_one_waits(self):
        failed = once_and_failed.enqueue()
        drain()
        second = once_and_failed.enqueue()
        assert robust_queue.retry(failed) is False
        assert state_of(failed) == "failed"
        assert holders() == {second.id}

    def test_the_tally_tells_why(self):
        once_and_failed.enqueue(1)
        once_and_failed.enqueue(2)
        drain()
        once_and_failed.enqueue(1)
        tally = retry_matching("default", Filter())
        assert (tally.matched, tally.done) == (2, 1)
        assert tally.passed_over == {"another one of it waits or runs": 1}

    def test_of_several_that_have_failed_the_first_is_retried(self):
        failed = []
        for _ in range(3):
            failed.append(once_and_failed.enqueue())
            drain()
        assert retry_matching("default", Filter()).done == 1
        assert state_of(failed[0]) == "ready"
        assert holders() == {failed[0].id}

    def test_a_lock_that_was_left_over_is_no_obstacle(self):
        failed = once_and_failed.enqueue()
        lock = UniqueLock.objects.get()
        drain()
        for holder in (lock.job_id, uuid4()):
            UniqueLock.objects.all().delete()
            UniqueLock.objects.create(key=lock.key, job_id=holder)
            assert robust_queue.retry(failed)
            assert holders() == {failed.id}
            drain()

    def test_a_discarded_one_can_be_retried_when_the_other_has_ended(self, performed):
        once_or_discarded.enqueue(1)
        second = once_or_discarded.enqueue(1)
        assert robust_queue.retry(second) is False
        drain()
        assert robust_queue.retry(second) is True
        drain()
        assert performed == [1, 1]

    def test_a_period_that_goes_on_is_no_obstacle(self):
        hourly.enqueue()
        drain()
        lock = UniqueLock.objects.get()
        failed = rows.failed(of=rows.job(unique_key=lock.key))
        assert robust_queue.retry(failed.pk)
        assert UniqueLock.objects.get().job_id == lock.job_id


class TestRerun:
    def test_the_key_is_handed_over(self):
        first = once.enqueue(1)
        second = robust_queue.rerun(first, priority=5)
        assert holders() == {second.id}
        assert once.enqueue(1).id == second.id

    def test_so_is_that_of_a_period(self):
        first = hourly.enqueue()
        second = robust_queue.rerun(first, priority=5)
        assert holders() == {second.id}

    def test_a_key_that_another_one_has(self):
        first, other = once.enqueue(1), once.enqueue(2)
        with pytest.raises(DuplicateTaskError) as caught:
            robust_queue.rerun(first, args=[2])
        assert caught.value.result_id == other.id
        assert set(states()) == {UUID(first.id), UUID(other.id)}
        assert holders() == {first.id, other.id}

    def test_whoever_was_too_late_changes_nothing(self):
        first = once.enqueue(1)
        take()
        with pytest.raises(UnreplaceableError):
            robust_queue.rerun(first)
        assert holders() == {first.id}
