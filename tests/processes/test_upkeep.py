"""What a dispatcher does besides dispatching, and how little it may get in the way."""

import time
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from robust_queue import registry
from robust_queue.configuration import DispatcherConfiguration
from robust_queue.lifecycle import clear as lifecycle_clear
from robust_queue.models import FinishedExecution, ScheduledExecution
from robust_queue.processes import upkeep
from robust_queue.processes.dispatcher import Dispatcher
from robust_queue.processes.upkeep import Upkeep
from tests.support.ended import DAY, ended
from tests.support.invariants import states
from tests.testapp.process_tasks import mark
from tests.testapp.tasks import note

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Nobody waits for the first sweep."""
    monkeypatch.setattr(upkeep, "FIRST_PAUSE", 0.0)


@pytest.fixture
def single_steps(monkeypatch):
    """A step is ten jobs, a slice is one step, and all jobs are kept equally long."""
    monkeypatch.setattr(registry, "discover", dict)
    monkeypatch.setattr(upkeep, "SLICE", 0.0)
    monkeypatch.setattr(lifecycle_clear, "LARGEST_BATCH", 10)


def a_dispatcher(**options):
    return Dispatcher(DispatcherConfiguration(**options), database="default")


def test_a_sweep_about_once_a_minute():
    ended("finished", ago=2 * DAY, count=3)
    it = Upkeep("default")
    assert 45 <= it.turn() <= 75
    assert states() == {}
    ended("finished", ago=2 * DAY)
    assert 40 <= it.turn() <= 75, "not yet"
    assert len(states()) == 1


@pytest.mark.usefixtures("single_steps")
def test_a_long_sweep_is_spread_over_turns_with_rests():
    ended("finished", ago=2 * DAY, count=35)
    it = Upkeep("default")
    begun = time.monotonic()
    rest = it.turn()
    taken = time.monotonic() - begun
    assert len(states()) == 25
    assert 0 < rest <= upkeep.REST * taken
    assert it.turn() > 0
    assert len(states()) == 25, "it rests"


@pytest.mark.usefixtures("single_steps")
def test_due_jobs_go_first_and_old_ones_go_on(monkeypatch):
    """A dispatcher that always has something to dispatch clears all the same."""
    monkeypatch.setattr(upkeep, "REST", 0)
    ended("finished", ago=2 * DAY, count=35)
    for _ in range(20):
        note.using(run_after=timedelta(hours=1)).enqueue()
    ScheduledExecution.objects.update(scheduled_at=timezone.now())
    dispatcher = a_dispatcher(batch_size=2)
    for turn in range(1, 4):
        dispatcher.turn()
        assert ScheduledExecution.objects.count() == 20 - 2 * turn
        assert FinishedExecution.objects.count() == 35 - 10 * turn


@pytest.mark.usefixtures("single_steps")
def test_while_it_clears_it_looks_for_due_jobs_no_more_often(monkeypatch):
    monkeypatch.setattr(upkeep, "REST", 0)
    ended("finished", ago=2 * DAY, count=35)
    dispatcher = a_dispatcher(polling_interval=60)
    dispatcher.turn()
    note.using(run_after=timedelta(hours=1)).enqueue()
    ScheduledExecution.objects.update(scheduled_at=timezone.now())
    while FinishedExecution.objects.exists():
        dispatcher.turn()
    assert ScheduledExecution.objects.count() == 1


def test_trouble_with_it_is_told_and_does_not_keep_due_jobs_waiting(monkeypatch):
    def refuse(*args, **kwargs):
        raise OperationalError("no")

    monkeypatch.setattr(lifecycle_clear, "store_for", refuse)
    dispatcher = a_dispatcher(polling_interval=0.001)
    with pytest.raises(OperationalError):
        dispatcher.turn()
    note.using(run_after=timedelta(hours=1)).enqueue()
    ScheduledExecution.objects.update(scheduled_at=timezone.now())
    time.sleep(0.002)
    dispatcher.turn()
    assert set(states().values()) == {"ready"}


def test_who_stops_begins_no_sweep():
    ended("finished", ago=2 * DAY)
    dispatcher = a_dispatcher()
    dispatcher.stop()
    dispatcher.turn()
    assert len(states()) == 1


@pytest.mark.django_db(transaction=True)
def test_a_supervisor_clears_what_has_finished(supervised):
    ended("finished", ago=2 * DAY, count=1200)
    (kept,) = ended("failed", ago=2 * DAY)
    modules = ["tests.testapp.process_tasks", "tests.testapp.impatient"]
    supervisor = supervised(dispatchers=[{}, {}], task_modules=modules).until_up()
    supervisor.until(_nothing_is_left, "it clears", timeout=90)
    mark.enqueue("and works")
    supervisor.until(lambda: FinishedExecution.objects.count() == 1, "it works")
    assert supervisor.stop() == 0
    assert states().pop(kept) == "failed"
    assert "goes on after an error" not in supervisor.log


def _nothing_is_left():
    return not FinishedExecution.objects.exists()
