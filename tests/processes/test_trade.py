"""What may go wrong where outcomes are recorded and jobs are taken at once."""

import time
from collections import deque

import pytest
from django.db import OperationalError

from robust_queue import enqueue_all
from robust_queue.compat import signal_modules, signals
from robust_queue.lifecycle.claim import Claiming, claim
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.settle import settle_and_claim
from robust_queue.models import (
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    Job,
    ReadyExecution,
)
from robust_queue.processes import page as pages
from robust_queue.processes import threads
from robust_queue.processes import worker as workers
from robust_queue.processes.coroutines import Coroutines
from robust_queue.processes.flights import EventLoop
from robust_queue.processes.foresight import Foresight
from robust_queue.processes.lanes import Duty
from robust_queue.processes.page import LEAST_SLOT, Page
from robust_queue.stores import store_for
from tests.support.in_process import in_process
from tests.support.invariants import states
from tests.support.processes import a_process
from tests.support.supervisors import until
from tests.testapp import coroutine_tasks
from tests.testapp.process_tasks import rest
from tests.testapp.tasks import add, add_async, echo

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def connected():
    """Connects receivers for the test, and for no longer."""
    known = []

    def connect(signal, receiver):
        signal.connect(receiver)
        known.append((signal, receiver))

    yield connect
    for signal, receiver in known:
        signal.disconnect(receiver)


@pytest.fixture
def nobody_listens(monkeypatch):
    for module in signal_modules(for_backport=True):
        monkeypatch.setattr(module.task_started, "receivers", [])


@pytest.fixture
def releases(monkeypatch):
    """How many jobs went back, each time some did."""
    real, found = workers.release, []

    def counted(database, claims):
        found.extend([len(claims)] if claims else [])
        return real(database, claims)

    monkeypatch.setattr(workers, "release", counted)
    return found


def holding(monkeypatch, count):
    monkeypatch.setattr(Foresight, "ahead", property(lambda self: count))


def expect_coroutines(worker, count):
    worker._crew.capacity._coroutines._size = count


def block_the_loop(worker, seconds):
    worker._crew.coroutines._loop = EventLoop()
    worker._crew.coroutines._loop.call_later(lambda: time.sleep(seconds))
    time.sleep(0.05)  # until it is in the middle of that


class TestLostReplies:
    def test_of_a_release_whose_job_is_taken_again(self, monkeypatch):
        """What runs is not taken for what went back."""
        holding(monkeypatch, 5)
        real, lost = workers.release, []

        def lossy(database, claims):
            done = real(database, claims)
            if claims and not lost:
                lost.append(claims)
                raise OperationalError("the reply was lost")
            return done

        monkeypatch.setattr(workers, "release", lossy)
        enqueue_all([rest.bind("first", 0.2), rest.bind("second", 0.6)])
        with in_process(threads=1, coroutines=0, room=10) as each:
            with pytest.raises(OperationalError):
                each.until(lambda: False)
            each.worker.recover()
            each.until(lambda: FinishedExecution.objects.count() == 1)
            each.until(lambda: ClaimedExecution.objects.count() == 1)
            each.worker.recover()
            each.worker.turn()
            assert not ReadyExecution.objects.exists(), "it runs"
            each.until(lambda: FinishedExecution.objects.count() == 2)
            each.drain()
            assert len(each.worker._slots) == len(each.page.slots)

    def test_of_something_large_strand_no_claims(self, monkeypatch):
        kind, lost = type(store_for("default")), []
        real = kind.settle

        def lossy(self, outcomes):
            found = real(self, outcomes)
            if not lost:
                lost.append(found)
                self.connection.close()
                raise OperationalError("server closed the connection unexpectedly")
            return found

        monkeypatch.setattr(kind, "settle", lossy)
        echo.enqueue("x" * 150_000)
        process = a_process()
        (first,) = claim("default", process_id=process)
        outcome = perform(first, database="default", worker_id="w").outcome
        enqueue_all(add.bind(i, 0) for i in range(10))
        claiming = Claiming(process_id=process, limit=5)
        recorded, claims = settle_and_claim("default", [outcome], claiming)
        assert recorded == {first.job_id}
        claimed = set(ClaimedExecution.objects.values_list("job_id", flat=True))
        assert claimed == {each.job_id for each in claims}
        assert len(claims) == 5


class TestAnnouncements:
    @pytest.mark.parametrize("task", [add, add_async])
    def test_none_is_lost_at_the_end(self, task, connected):
        told = []

        def listen(sender, task_result, **kwargs):
            time.sleep(0.002)
            told.append(task_result.id)

        connected(signals.task_finished, listen)
        enqueue_all(task.bind(i, 0) for i in range(60))
        with in_process(threads=3, coroutines=60, room=100) as each:
            each.until(lambda: FinishedExecution.objects.count() >= 10)
            each.worker.stop()
            each.drain()
            each.worker.finish(timeout=1.0)
            assert len(told) == FinishedExecution.objects.count()

    def test_nothing_is_taken_that_would_wait_for_listeners(self, connected, releases):
        connected(signals.task_finished, lambda sender, **kwargs: time.sleep(0.3))
        enqueue_all(add.bind(i, 0) for i in range(4))
        with in_process(threads=1, coroutines=0, room=10) as each:
            each.until(lambda: FinishedExecution.objects.count() == 4)
        assert releases == []

    @pytest.mark.parametrize("task", [add, coroutine_tasks.travel])
    def test_what_a_receiver_sets_in_the_context_reaches_the_task(
        self, task, connected
    ):
        found = []

        def set_trace(sender, **kwargs):
            coroutine_tasks.leftover.set("a trace")

        def look(sender, task_result, **kwargs):
            found.append(task_result.return_value)

        connected(signals.task_started, set_trace)
        connected(signals.task_finished, look)
        arguments = (1, 2) if task is add else ()
        task.enqueue(*arguments)
        with in_process(threads=1, coroutines=5, room=10) as each:
            each.until(lambda: found)
        assert found == ([3] if task is add else [["en-us", "a trace", "de"]])


@pytest.mark.usefixtures("nobody_listens")
class TestCoroutines:
    def test_hundreds_that_may_not_begin_all_end(self):
        enqueue_all(add_async.bind(i, 0) for i in range(600))
        page, ended = Page(700), []
        lane = Coroutines(
            650,
            Duty(
                database="default",
                worker_name="w",
                page=page,
                slots=deque(page.slots),
                may_begin=lambda: False,
                on_end=ended.append,
                wake=lambda: None,
            ),
        )
        lane._loop = EventLoop()
        lane._loop.call_later(lambda: time.sleep(0.3))
        for each in claim("default", process_id=a_process(), limit=600):
            lane.run(lane.reserve(each))
        until(lambda: len(ended) == 600, "all have ended")
        until(lambda: lane._running == 0, "none is left")
        lane.finish(1.0)

    def test_hundreds_that_cannot_be_read_all_fail(self):
        enqueue_all(add_async.bind(i, 0) for i in range(450))
        Job.objects.update(arguments="{nonsense")
        with in_process(threads=1, coroutines=500, room=50) as each:
            expect_coroutines(each.worker, 600)
            block_the_loop(each.worker, 0.05)
            each.until(lambda: FailedExecution.objects.count() == 450)
            each.drain()
            assert each.worker._crew.coroutines._running == 0

    def test_a_loop_that_is_blocked_is_not_given_the_same_jobs_over_and_over(
        self, releases
    ):
        enqueue_all(add_async.bind(i, 0) for i in range(100))
        with in_process(threads=1, coroutines=50, room=50) as each:
            expect_coroutines(each.worker, 50)
            block_the_loop(each.worker, 1.5)
            each.until(lambda: FinishedExecution.objects.count() == 100)
        assert sum(count > 1 for count in releases) <= 2


class TestRoom:
    def test_both_lanes_together_take_no_more_than_there_are_slots(self, monkeypatch):
        holding(monkeypatch, 150)
        pairs = [(add, add_async)] * 200
        enqueue_all(task.bind(1, 0) for pair in pairs for task in pair)
        with in_process(threads=3, coroutines=3, room=100) as each:
            capacity = each.worker._crew.capacity
            capacity._coroutines._size = capacity._synchronous._size = 150
            each.until(lambda: FinishedExecution.objects.count() == 400)
        assert set(states().values()) == {"finished"}

    def test_a_long_task_is_not_taken_for_a_tiny_one(self):
        foresight = Foresight(3)
        foresight.begin(0.0)
        for turn in range(2000):
            foresight.learn(0, turnaround=0.001, now=turn * 0.005)
        foresight.learn(1, turnaround=0.001, now=10.0)
        assert foresight.ahead == 0


class TestThreads:
    def test_tiny_tasks_leave_the_other_threads_asleep(self, monkeypatch):
        monkeypatch.setattr(threads, "TINY", 0.05)
        results = enqueue_all(add.bind(i, 0) for i in range(500))
        with in_process(threads=8, coroutines=0, room=100) as each:
            lane = each.worker._crew.threads
            awake = []
            real = lane._run

            def watched(held):
                awake.append(lane._awake)
                real(held)

            lane._run = watched
            each.until(lambda: FinishedExecution.objects.count() == len(results))
        # Nothing is known of the first ones. A loaded machine may call some later on.
        assert sorted(awake)[len(awake) // 2] <= 2

    def test_long_tasks_run_in_all_of_them(self):
        enqueue_all(rest.bind(f"{i}", 0.3) for i in range(8))
        begun = time.monotonic()
        with in_process(threads=8, coroutines=0, room=100) as each:
            each.until(lambda: FinishedExecution.objects.count() == 8)
        assert time.monotonic() - begun < 1.2

    def test_one_that_takes_longer_than_it_used_to_holds_nobody_up(self):
        enqueue_all(add.bind(i, 0) for i in range(200))
        with in_process(threads=3, coroutines=0, room=100) as each:
            each.until(lambda: FinishedExecution.objects.count() == 200)
            lane = each.worker._crew.threads
            lane._durations[rest.module_path] = 0.00001
            rest.enqueue("slower than ever", 1.0)
            enqueue_all(add.bind(i, 0) for i in range(20))
            begun = time.monotonic()
            each.until(lambda: FinishedExecution.objects.count() == 220)
            assert time.monotonic() - begun < 0.7
            each.until(lambda: not ClaimedExecution.objects.exists())
            assert [f.message for f in FailedExecution.objects.all()] == []


def test_where_memory_is_not_promised_the_page_is_small(monkeypatch):
    real, asked = pages._shared, []

    def refuse(size):
        asked.append(size)
        if size > 10 * LEAST_SLOT:
            raise OSError(12, "Cannot allocate memory")
        return real(size)

    monkeypatch.setattr(pages, "_shared", refuse)
    page = Page(5, slot_size=100 * LEAST_SLOT)
    assert len(asked) == 2
    assert list(page.records()) == []
