"""What the dispatchers put right: counts, keys that nobody needs, slots left unused."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from robust_queue.flow.keys import SEPARATOR
from robust_queue.lifecycle import recount
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.give_way import give_way
from robust_queue.lifecycle.pause import pause
from robust_queue.lifecycle.unblock import Unblocking
from robust_queue.models import BlockedExecution, Job, ReadyExecution, Semaphore
from robust_queue.testing import drain
from tests.support import rows
from tests.support.invariants import state_of
from tests.support.processes import a_process
from tests.testapp.limited_tasks import (
    by_keys,
    close_account,
    one_by_account,
    two_by_account,
    write_to_account,
)

pytestmark = pytest.mark.django_db(transaction=True)

DATABASE = "default"
KEY = f"{one_by_account.module_path}/a"


def expire():
    Semaphore.objects.update(expires_at=timezone.now() - timedelta(days=1))


class TestRecount:
    def test_what_is_right_stays(self):
        one_by_account.enqueue("a")
        assert recount.repair(DATABASE) == 0

    @pytest.mark.parametrize("value", [1, -3])
    def test_a_wrong_count_is_put_right(self, value):
        one_by_account.enqueue("a")
        Semaphore.objects.update(value=value)
        assert recount.repair(DATABASE) == 1
        assert Semaphore.objects.get().value == 0

    def test_a_slot_that_was_lost_goes_to_who_is_next(self):
        one_by_account.enqueue("a")
        later = one_by_account.enqueue("a")
        # By hand, or by a server that has lost something.
        Job.objects.filter(ready_execution__isnull=False).delete()
        assert state_of(later) == "blocked"
        assert recount.repair(DATABASE) == 1
        assert state_of(later) == "ready"

    def test_a_row_that_is_missing_is_made(self):
        one_by_account.enqueue("a")
        Semaphore.objects.all().delete()
        assert [each.key for each in recount.miscounted(DATABASE)] == [KEY]
        assert recount.repair(DATABASE) == 1
        assert (Semaphore.objects.get().value, recount.miscounted(DATABASE)) == (0, [])

    def test_jobs_with_several_keys_count_for_each(self):
        by_keys.enqueue(["a", "b"])
        assert recount.miscounted(DATABASE) == []
        Semaphore.objects.filter(key__endswith="/b").update(value=1)
        (wrong,) = recount.miscounted(DATABASE)
        assert (wrong.key[-1], wrong.held) == ("b", 1)

    def test_a_job_that_is_claimed_counts(self):
        one_by_account.enqueue("a")
        claim(DATABASE, process_id=a_process())
        Semaphore.objects.update(value=1)
        recount.repair(DATABASE)
        assert Semaphore.objects.get().value == 0

    def test_where_nothing_is_limited_nobody_looks(self, monkeypatch):
        monkeypatch.setattr(recount.registry, "discover", dict)
        monkeypatch.setattr(recount, "miscounted", pytest.fail)
        assert recount.repair(DATABASE) == 0


class TestForgetting:
    def test_however_many_they_are(self, monkeypatch):
        monkeypatch.setattr(recount, "BATCH", 2)
        for each in "abcde":
            one_by_account.enqueue(each)
        drain()
        expire()
        assert recount.forget_idle(DATABASE) == 5

    def test_idle_keys_are_forgotten_in_time(self):
        one_by_account.enqueue("a")
        drain()
        assert recount.forget_idle(DATABASE) == 0
        expire()
        assert recount.forget_idle(DATABASE) == 1
        assert not Semaphore.objects.exists()

    def test_others_are_not(self):
        one_by_account.enqueue("a")
        expire()
        assert recount.forget_idle(DATABASE) == 0


class TestSweep:
    def test_every_key_is_looked_at(self, monkeypatch):
        monkeypatch.setattr("robust_queue.lifecycle.unblock.PAGE", 2)
        for account in "abcde":
            job = rows.job(
                task_path=one_by_account.module_path,
                concurrency_key=f"{one_by_account.module_path}/{account}",
            )
            rows.blocked(job, concurrency_key=job.concurrency_key)
        assert Unblocking(DATABASE).sweep() == 5

    def test_it_goes_on_where_it_was(self, monkeypatch):
        monkeypatch.setattr("robust_queue.lifecycle.unblock.PAGE", 2)
        monkeypatch.setattr("robust_queue.lifecycle.unblock.MOST_PAGES", 1)
        for account in "abc":
            rows.blocked(concurrency_key=account)
        rows.semaphore(key="a", value=0)
        rows.semaphore(key="b", value=0)
        sweeps = Unblocking(DATABASE)
        assert sweeps.sweep() == 0
        assert sweeps._after == "b"

    def test_jobs_with_several_keys(self):
        keys = sorted(f"{by_keys.module_path}/{each}" for each in "ab")
        job = rows.job(
            task_path=by_keys.module_path, concurrency_key=SEPARATOR.join(keys)
        )
        rows.blocked(job, concurrency_key=keys[0], other_keys=keys[1])
        assert Unblocking(DATABASE).sweep() == 1
        assert recount.miscounted(DATABASE) == []


class TestGivingWay:
    def unused(self):
        pause(DATABASE, "default")
        holder = close_account.enqueue("a")
        other = write_to_account.enqueue("a", "Hello")
        return holder, other

    def test_a_job_of_another_queue_has_the_slot_in_time(self):
        holder, other = self.unused()
        assert give_way(DATABASE) == 0
        expire()
        assert give_way(DATABASE) == 1
        assert [state_of(holder), state_of(other)] == ["blocked", "ready"]
        assert recount.miscounted(DATABASE) == []
        assert Semaphore.objects.get().holder_id == UUID(other.id)

    def test_it_does_not_have_it_back_before_everybody_else(self):
        holder, other = self.unused()
        later = write_to_account.enqueue("a", "Hello again")
        expire()
        give_way(DATABASE)
        assert len(drain("mail")) == 2
        assert [state_of(each) for each in (holder, other, later)] == [
            "ready",
            "finished",
            "finished",
        ]
        row = ReadyExecution.objects.get()
        assert row.priority == 0
        assert recount.miscounted(DATABASE) == []

    def test_all_slots_of_a_paused_queue_are_handed_on(self):
        pause(DATABASE, "closed")
        for _ in range(2):
            two_by_account.using(queue_name="closed").enqueue("a")
        others = [two_by_account.enqueue("a") for _ in range(3)]
        ready = ReadyExecution.objects.filter(queue_name="closed")
        assert give_way(DATABASE) == 0
        # Others may make use of theirs all the time.
        ready.update(created_at=timezone.now() - timedelta(hours=1))
        assert give_way(DATABASE) == 2
        assert [state_of(each) for each in others] == ["ready", "ready", "blocked"]
        assert len(drain("default")) == 3

    def test_nobody_gives_way_to_its_own_queue(self):
        pause(DATABASE, "default")
        close_account.enqueue("a")
        later = close_account.enqueue("a")
        expire()
        assert give_way(DATABASE) == 0
        assert state_of(later) == "blocked"

    def test_a_job_that_has_begun_does_not(self):
        close_account.enqueue("a")
        other = write_to_account.enqueue("a", "Hello")
        claim(DATABASE, process_id=a_process())
        expire()
        assert give_way(DATABASE) == 0
        assert state_of(other) == "blocked"
        # Nor is it looked at again right away.
        assert Semaphore.objects.get().expires_at > timezone.now()

    def test_everything_is_done_in_the_end(self):
        self.unused()
        expire()
        give_way(DATABASE)
        assert len(drain()) == 1
        assert BlockedExecution.objects.count() == 0
