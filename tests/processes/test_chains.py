"""Jobs of one key that a worker runs one after the other, in one slot."""

import pytest
from django.db import connection

from robust_queue import enqueue_all
from robust_queue.lifecycle import recount
from robust_queue.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    ReadyExecution,
    Semaphore,
)
from robust_queue.processes import chains
from tests.support.in_process import in_process
from tests.support.statements import statements
from tests.testapp import limited_tasks
from tests.testapp.limited_tasks import (
    hot,
    hot_and_failing,
    hot_async,
    one_by_account,
    two_by_account,
)
from tests.testapp.rated_tasks import ask

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def ledger():
    limited_tasks.RUNNING.clear()
    limited_tasks.SEEN_TOGETHER.clear()
    yield
    assert limited_tasks.SEEN_TOGETHER == []
    assert recount.miscounted("default") == []


def all_done(count):
    return lambda: FinishedExecution.objects.count() == count


def labels(count):
    return [f"{i}" for i in range(count)]


@pytest.mark.parametrize("task", [hot, hot_async])
def test_a_hot_key_costs_few_round_trips(task):
    enqueue_all(task.bind(each) for each in labels(300))
    crew = {"threads": 3, "coroutines": 3, "room": 100}
    with in_process(**crew) as worker, statements() as found:
        worker.until(all_done(300))
        worker.drain()
    asked = [sql for sql in found.changes if "COUNT(*)" not in sql]
    per_job = 1 if connection.vendor == "postgresql" else 3
    assert len(asked) < 300 * per_job
    assert Semaphore.objects.get().value == 1


def test_tasks_of_both_kinds_share_it():
    for i in labels(40):
        (hot if int(i) % 2 else hot_async).enqueue(i)
    with in_process(threads=3, coroutines=3, room=100) as worker:
        worker.until(all_done(40))


def test_whoever_fails_is_followed_by_the_next():
    for i in labels(60):
        (hot_and_failing if int(i) % 3 == 0 else hot).enqueue(i)
    with in_process(threads=3, room=100) as worker:
        worker.until(all_done(40))
        worker.drain()
    assert FailedExecution.objects.count() == 20


def test_whoever_waits_for_a_slow_one_goes_back():
    enqueue_all(hot.bind(each) for each in labels(60))
    hot.using(priority=1).enqueue("slow", 1.0)
    enqueue_all(hot.using(priority=2).bind(f"last-{each}") for each in labels(5))
    with in_process(threads=3, room=100) as worker:
        worker.until(lambda: limited_tasks.RUNNING == ["slow"])
        worker.until(lambda: ClaimedExecution.objects.count() == 1)
        assert BlockedExecution.objects.count() == 5
        worker.until(all_done(66))


def test_a_worker_that_stops_gives_the_rest_back(monkeypatch):
    monkeypatch.setattr(chains, "STALE", 60)
    enqueue_all(hot.bind(each) for each in labels(60))
    hot.using(priority=1).enqueue("slow", 0.5)
    enqueue_all(hot.using(priority=2).bind(f"last-{each}") for each in labels(5))
    with in_process(threads=3, room=100) as worker:
        worker.until(lambda: limited_tasks.RUNNING == ["slow"])
        worker.worker.stop()
        worker.until(lambda: not worker.worker.is_busy)
        done = FinishedExecution.objects.count()
        left = ReadyExecution.objects.count(), BlockedExecution.objects.count()
    assert ClaimedExecution.objects.count() == 0
    assert done + sum(left) == 66
    assert left[0] == 1


def test_keys_that_nobody_waits_for_cost_nothing_more(monkeypatch):
    asked = []
    monkeypatch.setattr(
        chains.Chains, "_length", lambda self, head: asked.append(head) or 0
    )
    enqueue_all(one_by_account.bind(each) for each in labels(50))
    with in_process(threads=3, room=100) as worker:
        worker.until(all_done(50))
    assert asked == []


def test_more_than_one_slot():
    enqueue_all(two_by_account.bind("a") for _ in range(100))
    with in_process(threads=3, room=100) as worker:
        worker.until(all_done(100))
    assert Semaphore.objects.get().value == 2


def test_who_follows_leaves_a_place_for_those_with_a_rate():
    with in_process(threads=3, coroutines=0) as worker:
        known = worker.worker._chains
        head, *_ = enqueue_all(hot.bind(each) for each in labels(20))
        known._in_demand.add("hot/hot")
        known._durations[head.task.module_path] = 0.0001
        ask.enqueue("a")
        worker.worker.turn()
        worker.until(all_done(21))
