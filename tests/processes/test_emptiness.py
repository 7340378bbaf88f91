"""When is there nothing left to do for these workers?"""

from datetime import timedelta

import pytest
from django.utils import timezone

from robust_queue import registry
from robust_queue.configuration import WorkerConfiguration
from robust_queue.processes.emptiness import Emptiness
from tests.support import rows
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

PAST = timedelta(minutes=1)


@pytest.fixture
def is_empty():
    emptiness = Emptiness("default", [WorkerConfiguration(queues=["own", "mine*"])])
    return lambda: [emptiness(), emptiness()][1]


def due(queue):
    job = rows.job(queue_name=queue)
    return rows.scheduled(job, scheduled_at=timezone.now() - PAST)


def ready(queue):
    return rows.ready(rows.job(queue_name=queue))


def running(queue):
    return rows.claimed(rows.job(queue_name=queue))


MAKERS = pytest.mark.parametrize("make", [due, ready, running])


@MAKERS
@pytest.mark.parametrize("queue", ["own", "mine-too"])
def test_what_these_workers_serve_counts(is_empty, make, queue):
    assert is_empty()
    row = make(queue)
    assert not is_empty()
    row.delete()
    assert is_empty()


@MAKERS
def test_what_they_do_not_serve_does_not(is_empty, make):
    make("somebody-elses")
    assert is_empty()


def test_neither_does_what_is_for_later_or_paused(is_empty):
    rows.scheduled(rows.job(queue_name="own"))
    ready("mine-paused")
    rows.pause(queue_name="mine-paused")
    assert is_empty()


def test_a_job_behind_many_of_others_is_found(is_empty, monkeypatch):
    for number in range(1_001):
        due(f"other-{number % 3}")
    assert is_empty()
    due("own")
    with statements() as sent:
        assert not is_empty()
    assert all("DISTINCT" in sql.upper() for sql in sent.changes)


@MAKERS
def test_neither_does_what_is_left_to_workers_outside(is_empty, make, monkeypatch):
    """Nobody here could do it, however long a supervisor waits."""
    outside = frozenset({"mine-outside"})
    monkeypatch.setattr(registry, "external_queues", lambda: outside)
    make("mine-outside")
    assert is_empty()
