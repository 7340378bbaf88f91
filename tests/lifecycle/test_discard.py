"""Discarding: everything that waits or has failed, nothing that runs or is done."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from robust_queue.exceptions import UndiscardableError
from robust_queue.lifecycle import discard as lifecycle_discard
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import discard, discard_all
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.settle import settle
from robust_queue.models import Attempt, BlockedExecution, Job, ReadyExecution
from robust_queue.testing import drain
from tests.support.invariants import states
from tests.support.processes import a_process
from tests.testapp.tasks import add, explode, note

pytestmark = pytest.mark.django_db


def test_ready_and_scheduled():
    ready = note.enqueue()
    later = note.using(run_after=timedelta(hours=1)).enqueue()
    assert discard("default", ready.id) is True
    assert discard("default", later.id) is True
    assert states() == {}


def test_failed_with_its_past():
    result = explode.enqueue()
    drain()
    now = timezone.now()
    Attempt.objects.create(
        job_id=result.id, attempts=1, worker_id="w", started_at=now, finished_at=now
    )
    assert discard("default", result.id) is True
    assert states() == {}
    assert not Attempt.objects.exists()


def test_blocked():
    result = note.enqueue()
    row = ReadyExecution.objects.get()
    BlockedExecution.objects.create(
        job_id=row.job_id,
        queue_name=row.queue_name,
        priority=row.priority,
        created_at=row.created_at,
        concurrency_key="k",
    )
    row.delete()
    Job.objects.get(pk=result.id)
    assert discard("default", result.id) is True
    assert states() == {}


def test_a_claimed_job_refuses():
    result = note.enqueue()
    claim("default", process_id=a_process())
    with pytest.raises(UndiscardableError, match="claimed by a worker"):
        discard("default", result.id)


def test_a_finished_job_is_left_alone():
    result = add.enqueue(1)
    drain()
    assert discard("default", result.id) is False
    assert list(states().values()) == ["finished"]


def test_an_unknown_job():
    assert discard("default", uuid4()) is False


def test_many_at_once():
    results = [note.enqueue() for _ in range(5)]
    claim("default", process_id=a_process())
    assert discard_all("default", [r.id for r in results]) == 4


def test_a_job_that_fails_just_behind_the_first_look_is_found(monkeypatch):
    result = explode.enqueue()
    (held,) = claim("default", process_id=a_process())
    look = lifecycle_discard.discard_all
    outcomes = [perform(held, database="default", worker_id="w").outcome]

    def look_and_be_overtaken(*args):
        found = look(*args)
        if outcomes:
            settle("default", [outcomes.pop()])
        return found

    monkeypatch.setattr(lifecycle_discard, "discard_all", look_and_be_overtaken)
    assert discard("default", result.id) is True
    assert states() == {}
