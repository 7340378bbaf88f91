"""Jobs that are held beyond those that run: few round trips, and nobody loses by it."""

import threading
import time

import pytest
from django.db import connection

from robust_queue import enqueue_all
from robust_queue.compat import signals
from robust_queue.models import (
    ClaimedExecution,
    FinishedExecution,
    Pause,
    ReadyExecution,
)
from robust_queue.processes.foresight import STALE, Foresight
from robust_queue.processes.page import Stage
from tests.support.in_process import in_process
from tests.support.invariants import states
from tests.support.statements import statements
from tests.support.supervisors import until
from tests.testapp.process_tasks import rest
from tests.testapp.tasks import add, add_async

ONE_OF_SIX = [Stage.RESERVED] * 5 + [Stage.STARTED]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def five_ahead(monkeypatch):
    monkeypatch.setattr(Foresight, "ahead", property(lambda self: 5))


@pytest.fixture
def heard():
    """What was told of the ends of jobs, by whichever thread."""
    told = []

    def listen(sender, task_result, **kwargs):
        told.append(task_result.return_value)

    signals.task_finished.connect(listen)
    yield told
    signals.task_finished.disconnect(listen)


def stages(worker):
    return sorted(record.stage for record in worker.page.records())


def count(model):
    return model.objects.count()


@pytest.mark.parametrize("task", [add, add_async])
def test_tiny_tasks_share_their_round_trips(task, heard):
    enqueue_all(task.bind(i, 0) for i in range(600))
    with in_process(threads=3, coroutines=3, room=50) as worker:
        with statements() as found:
            worker.until(lambda: count(FinishedExecution) == 600)
            worker.drain()
        worker.until(lambda: len(heard) == 600)
    asked = [sql for sql in found.changes if "COUNT(*)" not in sql]
    per_trade = 1 if connection.vendor == "postgresql" else 9
    assert len(asked) < 600 / 6 * per_trade
    assert sorted(heard) == list(range(600))
    assert set(states().values()) == {"finished"}


def test_long_tasks_are_left_to_others():
    enqueue_all(add.bind(i, 0) for i in range(300))
    enqueue_all(rest.bind(f"{i}", 1.0) for i in range(9))
    with in_process(threads=3, coroutines=0, room=50) as worker:
        worker.until(lambda: stages(worker) == [Stage.STARTED] * 3)
        begun = time.monotonic()
        worker.until(lambda: count(ReadyExecution) == 6)
        assert time.monotonic() - begun < STALE + 0.4
        assert count(ClaimedExecution) == 3
        worker.until(lambda: count(FinishedExecution) == 309)


@pytest.mark.usefixtures("five_ahead")
def test_what_waits_in_vain_goes_back_as_if_it_had_never_been_taken():
    enqueue_all(rest.bind(f"{i}", 1.0) for i in range(6))
    with in_process(threads=1, coroutines=0, room=10) as worker:
        worker.until(lambda: stages(worker) == ONE_OF_SIX)
        begun = time.monotonic()
        worker.until(lambda: count(ReadyExecution) == 5)
        assert time.monotonic() - begun < STALE + 0.3
        assert set(ReadyExecution.objects.values_list("attempts", flat=True)) == {0}
        assert stages(worker) == [Stage.STARTED]


@pytest.mark.usefixtures("five_ahead")
@pytest.mark.parametrize("coroutines", [0, 2])
def test_who_is_asked_to_stop_gives_back_at_once_what_it_has_not_begun(coroutines):
    enqueue_all(rest.bind(f"{i}", 0.3) for i in range(6))
    with in_process(threads=1, coroutines=coroutines, room=10) as worker:
        worker.until(lambda: stages(worker) == ONE_OF_SIX)
        worker.worker.stop()
        worker.worker.turn()
        assert count(ReadyExecution) == 5
        worker.drain()
    assert sorted(states().values()) == ["finished"] + ["ready"] * 5


@pytest.mark.usefixtures("five_ahead")
def test_who_has_lost_trust_begins_none_of_what_it_holds():
    enqueue_all(rest.bind(f"{i}", 0.2) for i in range(6))
    with in_process(threads=1, coroutines=0, room=10) as worker:
        worker.until(lambda: stages(worker) == ONE_OF_SIX)
        worker.trusts = False
        worker.drain()
        assert sorted(states().values()) == ["finished"] + ["ready"] * 5


@pytest.mark.usefixtures("five_ahead")
def test_whoever_is_free_takes_what_has_waited_longest():
    enqueue_all(rest.bind(f"{i}", 1.0 if i == 0 else 0.01) for i in range(7))
    with in_process(threads=2, coroutines=0, room=10) as worker:
        worker.until(lambda: count(FinishedExecution) == 7)
        rows = FinishedExecution.objects.order_by("started_at")
        assert list(rows.values_list("job_id")) == list(
            rows.order_by("job_id").values_list("job_id")
        )
        first = rows[0]
        assert sum(row.started_at < first.finished_at for row in rows) == 7


def test_listeners_that_take_long_hold_up_no_task_that_is_taken():
    is_over = threading.Event()

    def listen(sender, task_result, **kwargs):
        is_over.wait(5)

    enqueue_all(add.bind(i, 0) for i in range(40))
    signals.task_finished.connect(listen)
    try:
        with in_process(threads=3, coroutines=0, room=50) as worker:
            worker.until(lambda: len(worker.worker._crew.threads._telling) >= 3)
            until(lambda: worker.worker.turn() and True, "it goes on to take turns")
            assert worker.worker._crew.threads.room == 0
            is_over.set()
            worker.until(lambda: count(FinishedExecution) == 40)
            worker.until(lambda: not worker.worker._crew.threads._telling)
    finally:
        signals.task_finished.disconnect(listen)


def test_news_is_not_lost_where_a_queue_is_paused():
    """The first look may pass over everything then; the second does not."""
    Pause.objects.create(queue_name="other")
    with in_process(threads=1, coroutines=0, polling_interval=60) as worker:
        worker.worker.turn()
        add.enqueue(1, 2)
        worker.worker._ears._note_news(["default"])
        begun = time.monotonic()
        worker.until(lambda: count(FinishedExecution) == 1)
        assert time.monotonic() - begun < 2
