"""A dispatcher carries out what is asked of very many jobs, besides dispatching."""

from uuid import uuid4

import pytest
from django.utils import timezone

from robust_queue.configuration import DispatcherConfiguration
from robust_queue.lifecycle import search_walk
from robust_queue.lifecycle.operations import LEASE, request
from robust_queue.lifecycle.search import JobSearch
from robust_queue.models import FailedExecution, Operation, ScheduledExecution
from robust_queue.processes import operating
from robust_queue.processes.dispatcher import Dispatcher
from robust_queue.processes.operating import Operating
from tests.support import rows
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


@pytest.fixture
def restless(monkeypatch):
    """Batches of two, one right behind the other."""
    monkeypatch.setattr(search_walk, "BATCH_SIZE", 2)
    monkeypatch.setattr(operating, "LONGEST_REST", 0.0)


@pytest.mark.usefixtures("restless")
def test_each_turn_does_a_batch_and_dispatches_first():
    for _ in range(5):
        rows.failed()
    request("default", "retry", JobSearch(state="failed"))
    identity = uuid4()
    configuration = DispatcherConfiguration(batch_size=1)
    dispatcher = Dispatcher(configuration, database="default", identity=identity)
    for turn in range(1, 3):
        rows.scheduled(scheduled_at=timezone.now())
        rows.scheduled(scheduled_at=timezone.now())
        assert dispatcher.turn() == 0.0, "there is more to do"
        assert ScheduledExecution.objects.count() == turn
        assert FailedExecution.objects.count() == 5 - 2 * turn
    assert Operation.objects.get().process_id == identity
    dispatcher.turn()
    assert Operation.objects.get().status == "finished"
    assert not FailedExecution.objects.exists()


def test_without_anything_to_do_it_costs_nothing():
    rows.operation(finished_at=timezone.now())
    it = Operating("default", uuid4())
    with statements() as sent:
        it.go_on(frozenset())
        assert it.pause == operating.LONG
    assert sent == []


def test_what_others_are_at_is_asked_for_once_a_second():
    rows.operation(process_id=uuid4(), leased_until=timezone.now() + LEASE)
    it = Operating("default", uuid4())
    with statements() as sent:
        for _ in range(3):
            it.go_on({"operations"})
    assert len(sent) == 1


def test_it_rests_as_long_as_a_batch_took():
    rows.operation(verb="cancel", criteria="{}")
    it = Operating("default", uuid4())
    it.go_on({"operations"})
    assert 0 <= it.pause <= operating.LONGEST_REST
    assert Operation.objects.get().status == "running"
