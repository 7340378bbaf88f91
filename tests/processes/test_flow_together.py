"""Chains, rates, pauses and turns in one worker."""

import time

import pytest
from django.db import connection

from robust_queue import enqueue_all
from robust_queue.lifecycle import recount
from robust_queue.lifecycle.pause_task import pause_task
from robust_queue.models import (
    BlockedExecution,
    ClaimedExecution,
    FinishedExecution,
    ScheduledExecution,
)
from robust_queue.processes.chains import Chains
from robust_queue.processes.foresight import Foresight
from tests.support.in_process import in_process
from tests.support.invariants import state_of
from tests.support.threads import uncommitted
from tests.testapp.combined_tasks import (
    hot_and_another,
    hot_and_free,
    hot_and_rated,
    rated_and_free,
    unique_and_timed,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hot_chains(monkeypatch):
    """Every key is known to be in demand, and its jobs to be short."""
    monkeypatch.setattr(Chains, "_is_worth", lambda self, each: each.concurrency_key)
    monkeypatch.setattr(Chains, "_length", lambda self, head: 24)
    real = Chains.__init__

    def init(self, *args):
        real(self, *args)
        self._in_demand.add("anything")

    monkeypatch.setattr(Chains, "__init__", init)


def all_done(count):
    return lambda: FinishedExecution.objects.count() == count


def test_followers_leave_places_for_jobs_with_a_rate(hot_chains, monkeypatch):
    monkeypatch.setattr(Foresight, "ahead", property(lambda self: 10))
    enqueue_all(hot_and_free.bind(n) for n in range(30))
    enqueue_all(rated_and_free.bind(n) for n in range(10))
    with in_process(threads=3, coroutines=0, room=10) as worker:
        worker.until(all_done(40))
        worker.drain()
    assert recount.miscounted("default") == []


def test_followers_that_come_too_early_or_are_paused_leave_the_slot(hot_chains):
    pause_task("default", hot_and_another.module_path)
    for n in range(10):
        hot_and_free.enqueue(n)
        hot_and_rated.enqueue(n)
        hot_and_another.enqueue(n)
    with in_process(threads=3, room=100) as worker:
        worker.until(all_done(12))
        worker.until(lambda: ScheduledExecution.objects.count() == 18)
        worker.drain()
    assert not ClaimedExecution.objects.exists()
    assert not BlockedExecution.objects.exists()
    assert recount.miscounted("default") == []


@pytest.mark.skipif(connection.vendor == "sqlite", reason="one writer at a time")
def test_whoever_waits_for_a_transaction_to_begin_is_not_out_of_time():
    result = unique_and_timed.enqueue()
    with in_process(threads=2) as worker:
        # Somebody is told that it waits, and takes long to commit.
        with uncommitted(unique_and_timed.enqueue):
            worker.until(ClaimedExecution.objects.exists)
            end = time.monotonic() + 1.5
            worker.until(lambda: time.monotonic() > end)
            # Whoever sees that would kill the worker, with all that it runs.
            assert not worker.page.has_overdue(0.5)
        worker.until(lambda: state_of(result) == "finished")
