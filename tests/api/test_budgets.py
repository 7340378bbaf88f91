"""What the calls of a worker outside cost: statements, and no more of them for many."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from robust_queue.api import room
from robust_queue.compat import task_logger
from robust_queue.lifecycle import announce
from robust_queue.lifecycle.cancel import cancel
from robust_queue.lifecycle.queues import is_known
from robust_queue.models import Process
from tests.support.statements import statements

from .conftest import Outsider

pytestmark = pytest.mark.django_db

# Who it is and what is asked of it; its token.
KNOWN = 2
HEARTBEAT = 1
# Several statements where one does not change several tables.
IS_ONE_STATEMENT = connection.vendor == "postgresql"
CLAIM = 1 if IS_ONE_STATEMENT else 6
LOOK = 1 if IS_ONE_STATEMENT else 2
PAUSED_TASKS = 1
CLAIMS = 1
SETTLE = 1 if IS_ONE_STATEMENT else 3


@pytest.fixture
def worker(render):
    # Of one queue: elsewhere than on PostgreSQL each of them is looked at by itself.
    return Outsider(queues=[render.queue_name])


def fall_silent(worker):
    earlier = timezone.now() - timedelta(seconds=5)
    Process.objects.filter(pk=worker.id).update(last_heartbeat_at=earlier)


def changed(table, found):
    return [sql for sql in found if sql.startswith("UPDATE") and table in sql]


def test_a_ping(worker):
    fall_silent(worker)
    with statements() as found:
        worker.ping()
    assert len(found.changes) == KNOWN + HEARTBEAT


def test_a_heartbeat_is_written_once_in_a_second(worker):
    fall_silent(worker)
    with statements() as found:
        for _ in range(5):
            worker.ping()
    assert len(changed("robust_queue_processes", found)) == 1


@pytest.fixture(params=["with a name", "without"])
def named(request):
    """What a request for jobs tells, and how many statements that takes more."""
    if request.param == "without":
        return {}, 0
    # What it was told of under that name before.
    return {"request_id": str(uuid4())}, 1


@pytest.mark.parametrize("count", [1, 50])
def test_to_dequeue(worker, render, count, named):
    told, more = named
    for _ in range(count):
        render.enqueue()
    fall_silent(worker)
    with statements() as found:
        assert len(worker.dequeue(limit=50, **told)["jobs"]) == count
    # And the name is written into the claims.
    most = KNOWN + HEARTBEAT + CLAIM + PAUSED_TASKS + 2 * more
    assert len(found.changes) <= most


def test_to_dequeue_in_vain(worker, named):
    told, more = named
    with statements() as found:
        worker.dequeue(**told)
    assert len(found.changes) <= KNOWN + LOOK + more


@pytest.mark.parametrize("count", [1, 50])
def test_to_report(worker, render, count):
    for _ in range(count):
        render.enqueue()
    jobs = worker.dequeue(limit=50)["jobs"]
    ends = [
        {"job": job["id"], "token": job["token"], "outcome": "succeeded"}
        for job in jobs
    ]
    fall_silent(worker)
    with statements() as found:
        answers = worker.call("/outcomes", {"outcomes": ends})["outcomes"]
    assert all(each["recorded"] for each in answers)
    assert len(found.changes) <= KNOWN + HEARTBEAT + CLAIMS + SETTLE


def test_to_wait(worker, monkeypatch, named):
    told, more = named
    monkeypatch.setattr(room, "jittered", float)
    fall_silent(worker)
    with statements() as found:
        worker.dequeue(wait=1.6, **told)
    # At once, then 0.1, 0.2, 0.4 and 0.8 seconds apart, and at the end.
    # Behind the first look, whether the token still holds is asked each time.
    looks = 6 * (1 + more + LOOK)
    assert len(found.changes) <= KNOWN - 1 + HEARTBEAT + looks + 5
    assert len(changed("robust_queue_processes", found)) == 1


def test_who_knows_that_a_job_is_to_end_does_not_ask_again_and_again(worker, render):
    result = render.enqueue()
    worker.take()
    cancel("default", result.id)
    begun = timezone.now()
    assert worker.dequeue(wait=1000)["cancelled"] == [result.id]
    assert timedelta(seconds=0.9) < timezone.now() - begun < timedelta(seconds=10)


@pytest.mark.parametrize(("level", "is_heard"), [("INFO", True), ("WARNING", False)])
def test_lines_that_nobody_reads_cost_no_result(caplog, level, is_heard):
    caplog.set_level(level, task_logger.name)
    assert announce.is_heard("task_finished") is is_heard


@pytest.mark.parametrize(("name", "found"), [("default", 0), ("seldom", 7)])
def test_to_know_a_queue(db, name, found):
    """Nothing for what code names; each table and the workers for what nobody does."""
    with statements() as sent:
        is_known("default", name)
    assert len(sent) <= found
