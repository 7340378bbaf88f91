"""Run now: scheduled jobs become due at once, and go the way of all that are."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from robust_queue.lifecycle.cancel import cancel
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.pause_task import pause_task, set_aside
from robust_queue.lifecycle.run_now import run_all_now, run_now, run_now_matching
from robust_queue.lifecycle.selection import Filter
from robust_queue.models import ScheduledExecution
from tests.support import rows
from tests.support.invariants import state_of, states
from tests.support.processes import a_process
from tests.support.threads import started, uncommitted
from tests.testapp.tasks import note

HOUR = timedelta(hours=1)

pytestmark = pytest.mark.django_db(transaction=True)


def later():
    return note.using(run_after=HOUR).enqueue()


def test_it_is_due_and_dispatched():
    wanted, other = later(), later()
    assert run_now("default", wanted.id) is True
    assert dispatch_due("default") == 1
    assert (state_of(wanted), state_of(other)) == ("ready", "scheduled")


def test_attempts_are_kept():
    row = rows.scheduled(attempts=3)
    assert run_now("default", row.pk)
    again = ScheduledExecution.objects.get()
    assert again.attempts == 3
    assert again.scheduled_at <= timezone.now()


@pytest.mark.parametrize("make", [rows.ready, rows.claimed, rows.failed, rows.finished])
def test_only_what_is_scheduled(make):
    row = make()
    assert run_now("default", row.pk) is False
    assert run_now("default", uuid4()) is False
    assert list(states().values()) == [state_of(row.job)]


def test_once_is_enough():
    row = rows.scheduled()
    assert run_now("default", row.pk) is True
    assert run_now("default", row.pk) is False


def test_what_was_passed_over_is_told():
    wanted = [rows.scheduled().pk for _ in range(2)]
    rows.scheduled(scheduled_at=timezone.now() - HOUR)
    tally = run_now_matching("default", Filter(state="scheduled"))
    assert (tally.matched, tally.done) == (3, 2)
    assert tally.passed_over == {"due already": 1}
    assert run_all_now("default", wanted) == 0


def test_only_scheduled_jobs_may_be_asked_for():
    with pytest.raises(ValueError, match="not ready ones"):
        run_now_matching("default", Filter(state="ready"))


def test_one_of_a_paused_task_stays_aside():
    result = note.enqueue()
    pause_task("default", result.task.module_path)
    claims = claim("default", process_id=a_process(), limit=1)
    assert set_aside("default", claims, worker_id="w") == []
    assert run_now("default", result.id) is False
    tally = run_now_matching("default", Filter(state="scheduled"))
    assert tally.passed_over == {"its task is paused": 1}


@pytest.mark.usefixtures("row_locks")
def test_whoever_cancels_it_first_has_it():
    result = later()
    with uncommitted(cancel, "default", result.id):
        running = started(run_now, "default", result.id)
    assert running.result(30) is False
    assert state_of(result) == "failed"
