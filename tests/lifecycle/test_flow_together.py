"""Limits, rates, unique keys and pauses of the same jobs."""

import pytest
from django.db import connection
from django.utils import timezone

from robust_queue import rerun
from robust_queue.lifecycle import rates, recount
from robust_queue.lifecycle.cancel import cancel
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import clear_queue, discard
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.pause_task import pause_task, resume_task, set_aside
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.retry import retry
from robust_queue.lifecycle.settle import settle
from robust_queue.models import (
    Job,
    ScheduledExecution,
    UniqueLock,
)
from robust_queue.testing import drain
from tests.support.invariants import state_of
from tests.support.processes import a_process
from tests.support.threads import started, uncommitted
from tests.testapp.combined_tasks import (
    everything,
    hot_and_another,
    hot_and_free,
    latest_of_two,
    one_of_two,
)
from tests.testapp.rated_tasks import slow
from tests.testapp.tasks import note


def take(limit=100):
    return claim("default", process_id=a_process(), limit=limit)


@pytest.mark.django_db
def test_drain_goes_on_with_whoever_waited_for_a_job_that_is_set_aside(performed):
    hot_and_free.enqueue("paused")
    hot_and_another.enqueue("next")
    pause_task("default", hot_and_free.module_path)
    drain()
    assert performed == ["next"]


@pytest.mark.django_db(transaction=True)
def test_a_slot_of_what_is_set_aside_goes_to_the_next():
    first, second = hot_and_free.enqueue("a"), hot_and_another.enqueue("b")
    pause_task("default", hot_and_free.module_path)
    assert set_aside("default", take(), worker_id="w") == []
    assert (state_of(first), state_of(second)) == ("scheduled", "ready")
    assert recount.miscounted("default") == []
    resume_task("default", hot_and_free.module_path)
    dispatch_due("default")
    assert state_of(first) == "blocked"


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="one writer at a time")
def test_a_replacement_in_a_transaction_keeps_nobody_from_giving_slots_back():
    one_of_two.enqueue("other")
    (other,) = take()
    latest_of_two.enqueue(1, "old")
    done = perform(other, database="default", worker_id="w")
    with uncommitted(latest_of_two.enqueue, 1, "new"):
        assert started(settle, "default", [done.outcome]).result(3)


@pytest.mark.django_db
def test_after_a_queue_was_cleared_nobody_is_told_to_stand_behind_those_gone():
    for n in range(50):
        slow.enqueue(n)
    assert len(rates.admitted("default", take(), worker_id="w")) == 2
    clear_queue("default", "default")
    assert not ScheduledExecution.objects.exists()
    slow.enqueue("later")
    assert rates.admitted("default", take(), worker_id="w") == []
    row = ScheduledExecution.objects.get()
    assert (row.scheduled_at - row.created_at).total_seconds() < 2 * 3600


def gated(claims):
    return rates.admitted("default", claims, worker_id="w")


def run(claimed):
    done = perform(claimed, database="default", worker_id="w")
    settle("default", [done.outcome])
    return done.outcome


@pytest.mark.django_db(transaction=True)
class TestEverythingAtOnce:
    @pytest.fixture(autouse=True)
    def counted(self):
        yield
        assert recount.miscounted("default") == []

    def test_a_job_that_comes_too_early_keeps_its_key_and_leaves_its_slot(self):
        first = everything.enqueue(1)
        run(*gated(take()))
        second, third = everything.enqueue(1), hot_and_free.enqueue("x")
        assert second.id != first.id
        assert state_of(third) == "blocked"
        assert gated(take()) == []
        assert (state_of(second), state_of(third)) == ("scheduled", "ready")
        assert everything.enqueue(1).id == second.id
        ScheduledExecution.objects.update(scheduled_at=timezone.now())
        dispatch_due("default")
        assert state_of(second) == "blocked"
        (claimed,) = take()
        run(claimed)
        assert state_of(second) == "ready"

    def test_it_can_be_cancelled_discarded_and_run_again_wherever_it_waits(self):
        pause_task("default", everything.module_path)
        one, two = everything.enqueue(1), everything.enqueue(2)
        assert set_aside("default", take(), worker_id="w") == []
        assert set_aside("default", take(), worker_id="w") == []
        new = rerun(one.id, args=[3])
        assert state_of(new) == "ready"
        assert set_aside("default", take(), worker_id="w") == []
        assert state_of(new) == "scheduled"
        assert cancel("default", two.id)
        assert UniqueLock.objects.count() == 1
        assert retry("default", two.id)
        assert state_of(two) == "ready"
        assert UniqueLock.objects.count() == 2
        resume_task("default", everything.module_path)
        dispatch_due("default")
        assert state_of(new) == "blocked"
        assert discard("default", two.id)
        assert state_of(new) == "ready"
        assert UniqueLock.objects.count() == 1
        new.refresh()

    def test_the_moment_aside_is_nobodys_wish(self):
        pause_task("default", everything.module_path)
        one = everything.enqueue(1)
        set_aside("default", take(), worker_id="w")
        new = rerun(one.id)
        assert Job.objects.get(pk=new.id).run_after is None

    def test_run_again_elsewhere(self):
        pause_task("default", note.module_path)
        one = note.enqueue(1)
        set_aside("default", take(), worker_id="w")
        resume_task("default", note.module_path)
        new = rerun(one.id)
        dispatch_due("default")
        assert state_of(new) == "ready"
