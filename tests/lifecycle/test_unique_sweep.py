"""Locks that are left over go in time; those that count stay."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from robust_queue.lifecycle import unique_sweep
from robust_queue.lifecycle.unique_sweep import sweep
from robust_queue.models import UniqueLock
from tests.support import rows
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def left():
    return set(UniqueLock.objects.values_list("pk", flat=True))


def test_what_has_expired_goes(monkeypatch):
    monkeypatch.setattr(unique_sweep, "BATCH_SIZE", 2)
    for _ in range(5):
        rows.unique_lock(expires_at=timezone.now() - HOUR)
    kept = rows.unique_lock(expires_at=timezone.now() + HOUR)
    assert sweep("default") == 5
    assert left() == {kept.pk}


@pytest.mark.parametrize("state", ["scheduled", "ready", "blocked", "claimed"])
def test_the_lock_of_a_pending_job_stays(state):
    lock = rows.unique_lock(job_id=getattr(rows, state)().pk)
    assert sweep("default") == 0
    assert left() == {lock.pk}


@pytest.mark.parametrize("state", ["finished", "failed"])
def test_the_lock_of_a_job_that_has_ended_goes(state):
    rows.unique_lock(job_id=getattr(rows, state)().pk)
    assert sweep("default") == 1
    assert left() == set()


def test_the_lock_of_a_job_that_is_gone_goes():
    rows.unique_lock(job_id=uuid4())
    assert sweep("default") == 1


def test_a_few_at_a_time_all_have_their_turn(monkeypatch):
    monkeypatch.setattr(unique_sweep, "LOOKED_AT", 2)
    for _ in range(20):
        rows.unique_lock()
    rounds = 0
    while UniqueLock.objects.exists():
        assert sweep("default") <= 4
        rounds += 1
    assert rounds >= 5


def test_nothing_is_written_where_nothing_is_left_over():
    rows.unique_lock(job_id=rows.ready().pk)
    with statements() as found:
        sweep("default")
    assert len(found) == 3
