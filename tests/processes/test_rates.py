"""Workers begin what the rates of tasks let them, and no more."""

import pytest
from django.db import OperationalError

from robust_queue.lifecycle import rates
from robust_queue.models import (
    ClaimedExecution,
    FinishedExecution,
    ReadyExecution,
    ScheduledExecution,
)
from robust_queue.signals import attempt_snoozed
from tests.support.in_process import in_process
from tests.support.invariants import state_of, states
from tests.support.rates import RATE, begun_within
from tests.support.receivers import connected
from tests.testapp.rated_tasks import alone, slow, wait
from tests.testapp.tasks import note

SECONDS = 4

pytestmark = pytest.mark.django_db(transaction=True)


def all_told_apart():
    return not ReadyExecution.objects.exists()


def test_so_many_begin_and_the_others_are_told_to_come_back(performed):
    for n in range(10):
        slow.enqueue(n)
    with in_process(threads=3, coroutines=0) as worker:
        worker.until(all_told_apart)
        worker.drain()
    assert sorted(performed) == [0, 1]
    assert sorted(states().values()) == ["finished"] * 2 + ["scheduled"] * 8
    assert {each.attempts for each in ScheduledExecution.objects.all()} == {0}


@pytest.mark.parametrize("task", [wait, alone])
def test_of_whatever_kind_they_are(task, settings):
    settings.ROBUST_QUEUE = {"task_modules": ["tests.testapp.rated_tasks"]}
    for n in range(4):
        task.enqueue(n)
    with in_process(threads=2, coroutines=2, isolated=2, room=10) as worker:
        worker.until(all_told_apart)
        worker.drain()
    assert sorted(states().values()) == ["finished"] + ["scheduled"] * 3


def test_nobody_hears_of_those_that_were_not_begun(performed):
    heard = []

    def listen(sender, **kwargs):
        heard.append(sender)

    for n in range(5):
        slow.enqueue(n)
    with connected(attempt_snoozed, listen), in_process(threads=3) as worker:
        worker.until(all_told_apart)
        worker.drain()
    assert len(performed) == 2
    assert heard == []


def test_no_token_is_spent_on_what_there_is_no_room_for(performed, monkeypatch):
    """Surplus goes back at once, and would have to take another one next time."""
    asked = []
    admitted = rates.admitted

    def note_down(database, claims, **options):
        asked.extend(each.job_id for each in claims)
        return admitted(database, claims, **options)

    monkeypatch.setattr(rates, "admitted", note_down)
    with in_process(threads=1, coroutines=5) as worker:
        monkeypatch.setattr(worker.worker._crew.capacity, "limit", lambda room, now: 6)
        results = [slow.enqueue(n) for n in range(2)]
        worker.worker.turn()
        assert len(asked) == 1
        worker.until(lambda: state_of(results[1]) == "finished")
    assert sorted(performed) == [0, 1]


def test_a_database_that_goes_away_meanwhile_costs_no_job(performed, monkeypatch):
    def refuse(*args, **kwargs):
        raise OperationalError("gone")

    slow.enqueue("it")
    note.enqueue("other")
    with in_process(threads=3, coroutines=0) as worker:
        with monkeypatch.context() as patch:
            patch.setattr(rates, "_take", refuse)
            with pytest.raises(OperationalError):
                worker.until(lambda: False)
        worker.worker.recover()
        worker.until(lambda: FinishedExecution.objects.count() == 2)
        worker.drain()
    assert "it" in performed
    assert not ClaimedExecution.objects.exists()


@pytest.mark.parametrize("mode", ["fork", "async"])
def test_the_rate_holds_for_all_workers_together(witnessed, witness, mode):
    def start(**options):
        return witnessed("--mode", mode, **options)

    begun = begun_within(SECONDS, start=start, witness=witness)
    print(f"\n{mode}: {begun} begun in {SECONDS} s at {RATE}/s")  # noqa: T201
    # The bucket is full at first, of what comes in a second; jobs begin a little after
    # they have taken their token.
    assert RATE * SECONDS <= begun <= RATE * (SECONDS + 1) * 1.05
