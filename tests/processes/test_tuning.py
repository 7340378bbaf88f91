"""Workers that are tuned while they run, by real rows and in real processes."""

import json
import os
import signal
import threading
import time

import pytest
from django.db import connection

from robust_queue.exceptions import TuningError
from robust_queue.lifecycle.tune import Wish, forget_wishes, tune
from robust_queue.lifecycle.workers import workers
from robust_queue.models import Process, Tuning
from robust_queue.processes import tuner
from robust_queue.processes.foresight import MOST as AHEAD
from robust_queue.processes.page import Page
from robust_queue.processes.pool import Pool
from tests.support import rows
from tests.support.in_process import in_process
from tests.support.invariants import state_of
from tests.support.statements import statements
from tests.support.supervisors import is_alive, marks
from tests.testapp.process_tasks import mark, rest

MODULES = ["tests.testapp.process_tasks"]
FACTS = '{"queues": ["*"], "threads": 3, "most_threads": 40}'
AT_ONCE = 2.0


# ── The wish ───────────────────────────────────────────────────────────────────


@pytest.mark.django_db
class TestTheWish:
    @pytest.fixture
    def process(self):
        return rows.process(metadata=FACTS)

    def wish(self):
        row = Tuning.objects.get()
        return row.threads, row.queues

    def test_what_is_not_said_stays_as_it_was(self, process):
        tune("default", process.pk, threads=5)
        assert self.wish() == (5, "")
        tune("default", process.pk, queues=["mail", "photos*"])
        assert self.wish() == (5, "mail,photos*")
        tune("default", process.pk, threads=2)
        assert self.wish() == (2, "mail,photos*")

    def test_a_reset_goes_back_to_what_is_configured(self, process):
        tune("default", process.pk, threads=5, queues=["mail"])
        tune("default", process.pk, reset=True, threads=4)
        assert self.wish() == (4, "")
        tune("default", process.pk, reset=True)
        assert self.wish() == (None, "")

    def test_what_was_inherited_stays_as_well(self, process):
        told = json.dumps({**json.loads(FACTS), "tuned": {"threads": 7}})
        Process.objects.update(metadata=told)
        tune("default", process.pk, queues=["mail"])
        assert self.wish() == (7, "mail")

    def test_a_worker_is_named_by_its_id_its_name_or_the_beginning_of_it(self, process):
        for named in (process.pk, str(process.pk), process.name, process.name[:15]):
            assert tune("default", named, threads=5).id == process.pk

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({}, "Nothing to change"),
            ({"threads": 0}, "threads"),
            ({"threads": "many"}, "threads"),
            ({"threads": 41}, "up to 40 threads"),
            ({"queues": []}, "at least one queue"),
            ({"queues": ["a*b"]}, "only at its end"),
            ({"queues": ["a,b"]}, "no comma"),
            ({"queues": ["m" * 100 + str(n) for n in range(50)]}, "Too many queues"),
        ],
    )
    def test_nonsense_is_refused_with_a_reason(self, process, given, words):
        with pytest.raises(TuningError, match=words):
            tune("default", process.pk, **given)
        assert not Tuning.objects.exists()

    def test_who_is_not_there_is_not_tuned(self, process):
        with pytest.raises(TuningError, match=r"No live worker.*There are: worker-"):
            tune("default", "nobody", threads=5)
        with pytest.raises(TuningError, match="No live worker"):
            tune("default", "", threads=5)
        rows.process(metadata=FACTS)
        with pytest.raises(TuningError, match="Several workers"):
            tune("default", "worker-", threads=5)
        rows.process("Dispatcher", name="dispatcher")
        with pytest.raises(TuningError, match="No live worker"):
            tune("default", "dispatcher", threads=5)

    @pytest.mark.parametrize("metadata", ["", "nonsense", "[]", '{"queues": 7}'])
    def test_a_worker_that_tells_nonsense_is_listed_all_the_same(self, metadata):
        rows.process(metadata=metadata)
        (found,) = workers("default")
        assert (found.queues, found.threads, found.tuned) == ((), 3, {})

    def test_a_wish_is_forgotten_with_its_worker(self, process):
        tune("default", process.pk, threads=5)
        rows.tuning()
        assert forget_wishes("default") == 1
        assert Tuning.objects.get().pk == process.pk
        with statements() as found:
            assert forget_wishes("default") == 0
        assert len(found) == 1

    def test_how_many_each_has_at_hand(self, process):
        rows.claimed(by=process)
        rows.claimed(by=process)
        rows.process(metadata=FACTS)
        busy = {each.id: each.busy for each in workers("default")}
        assert sorted(busy.values()) == [0, 2]
        assert busy[process.pk] == 2


# ── Parts ──────────────────────────────────────────────────────────────────────


class TestAPool:
    @pytest.fixture
    def pool(self):
        pool = Pool(2)
        pool.start()
        yield pool
        pool.finish(timeout=5)

    def at_once(self, pool, number):
        """Do so many errands meet, each in a thread of its own?"""
        barrier = threading.Barrier(number + 1)
        for _ in range(number):
            pool.submit(lambda: barrier.wait(10))
        barrier.wait(10)

    def alive(self, pool):
        return sum(each.is_alive() for each in pool._threads)

    def test_it_grows_and_shrinks(self, pool):
        self.at_once(pool, 2)
        assert pool.resize(5) == 5
        self.at_once(pool, 5)
        assert pool.resize(1) == 1
        end = time.monotonic() + 10
        while self.alive(pool) > 1:
            assert time.monotonic() < end
        self.at_once(pool, 1)
        assert pool.resize(3) == 3
        self.at_once(pool, 3)

    def test_who_is_too_many_finishes_first(self, pool):
        begun, go, ended = threading.Barrier(3), threading.Event(), []
        for n in range(2):
            pool.submit(lambda n=n: (begun.wait(10), go.wait(10), ended.append(n)))
        begun.wait(10)
        pool.resize(1)
        assert self.alive(pool) == 2
        go.set()
        end = time.monotonic() + 10
        while self.alive(pool) > 1 or len(ended) < 2:
            assert time.monotonic() < end

    def test_threads_that_cannot_be_had(self, pool, monkeypatch):
        def refuse(thread):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert pool.resize(5) == 2


class TestThePage:
    def test_a_wish_outlives_the_child(self):
        page = Page(1)
        assert page.tuning == ""
        wish = Wish(5, ("mail", "名前*"))
        page.show_tuning(wish.text)
        assert Wish.of(json.loads(page.tuning)) == wish
        page.show_tuning(Wish().text)
        assert Wish.of(json.loads(page.tuning)) == Wish()

    def test_it_does_not_run_over(self):
        page = Page(1)
        page.show_tuning("x" * 20_000)
        assert page.tuning == ""
        assert list(page.records()) == []


# ── A worker ───────────────────────────────────────────────────────────────────


@pytest.mark.django_db(transaction=True)
class TestAWorker:
    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch):
        monkeypatch.setattr(tuner, "BETWEEN_QUESTIONS", 0.01)

    @pytest.fixture
    def worker(self):
        with in_process(threads=1, coroutines=0, isolated=0, room=10) as each:
            Process.objects.update(metadata=FACTS)
            yield each

    def tune(self, **wish):
        tune("default", Process.objects.get().pk, **wish)

    def running(self):
        return len({label.split()[0] for label in marks("long")})

    def test_more_threads_begin_what_waits(self, worker):
        results = [rest.enqueue(f"long{n}", 1) for n in range(4)]
        worker.until(lambda: self.running() == 1)
        self.tune(threads=4)
        worker.until(lambda: self.running() == 4)
        assert all(state_of(each) == "claimed" for each in results)
        worker.drain()

    def test_fewer_threads_finish_what_they_run(self, worker):
        self.tune(threads=3)
        results = [rest.enqueue(f"long{n}", 1) for n in range(5)]
        worker.until(lambda: self.running() == 3)
        self.tune(threads=1)
        worker.until(lambda: worker.worker._crew.threads._size == 1)
        worker.until(lambda: [state_of(r) for r in results].count("finished") >= 3)
        assert self.running() <= 4, "one at a time from now on"
        worker.until(lambda: all(state_of(each) == "finished" for each in results))
        begun = [marks(f"long{n}") for n in (3, 4)]
        assert all(begun)

    def test_other_queues(self, worker):
        self.tune(queues=["mail"])
        worker.until(lambda: worker.worker._configuration.queues == ("mail",))
        left = mark.enqueue("left")
        served = mark.using(queue_name="mail").enqueue("served")
        worker.until(lambda: state_of(served) == "finished")
        assert state_of(left) == "ready"
        self.tune(reset=True)
        worker.until(lambda: state_of(left) == "finished")

    def test_a_wish_that_makes_no_sense_is_told_and_does_no_harm(self, worker, caplog):
        Tuning.objects.create(process_id=Process.objects.get().pk, threads=0)
        result = mark.enqueue("it")
        worker.until(lambda: state_of(result) == "finished")
        worker.until(lambda: "cannot be tuned so" in caplog.text)
        for _ in range(5):
            time.sleep(0.02)  # longer than it waits for the next question
            worker.worker.turn()
        assert caplog.text.count("cannot be tuned so") == 1

    def test_what_it_costs(self, worker, monkeypatch):
        monkeypatch.setattr(tuner, "BETWEEN_QUESTIONS", 60)
        worker.worker.turn()
        time.sleep(0.02)
        worker.worker.turn()
        with statements() as found:
            for _ in range(20):
                worker.worker.turn()
        assert not [sql for sql in found if "robust_queue_tunings" in sql]


# ── Across processes ───────────────────────────────────────────────────────────


def facts(running):
    (row,) = running.rows("Worker")
    return json.loads(row.metadata)


def tuned(running, **wish):
    (row,) = running.rows("Worker")
    tune("default", row.pk, **wish)
    return row


def goes_on_with(running, name, value):
    running.until(lambda: facts(running)[name] == value, f"{name} is {value}")


class TestAcrossProcesses:
    @pytest.mark.parametrize("mode", ["fork", "async"])
    def test_a_worker_changes_without_a_restart(self, supervised, mode):
        running = supervised(
            task_modules=MODULES, mode=mode, workers=[{"threads": 1, "queues": "a"}]
        ).until_up()
        assert facts(running)["most_threads"] == 1 + AHEAD
        row = tuned(running, threads=4, queues=["b*"])
        goes_on_with(running, "threads", 4)
        assert facts(running)["queues"] == ["b*"]
        results = [rest.using(queue_name="b1").enqueue(f"r{n}", 2) for n in range(4)]
        running.until(lambda: len(marks("r")) == 4, "four run at once")
        assert all(state_of(each) == "claimed" for each in results)
        tuned(running, reset=True)
        goes_on_with(running, "queues", ["a"])
        goes_on_with(running, "threads", 1)
        assert running.rows("Worker")[0].pk == row.pk
        assert running.stop() == 0
        assert all(state_of(each) == "finished" for each in results)

    def test_who_takes_its_place_goes_on_with_it(self, supervised):
        running = supervised(
            task_modules=MODULES, workers=[{"threads": 1, "polling_interval": 0.05}]
        ).until_up()
        tuned(running, threads=3, queues=["mail", "*"])
        goes_on_with(running, "threads", 3)
        (before,) = running.pids()
        os.kill(before, signal.SIGKILL)
        running.until(lambda: running.pids() not in ([], [before]), "it is replaced")
        assert not is_alive(before)
        goes_on_with(running, "threads", 3)
        assert facts(running)["queues"] == ["mail", "*"]
        assert facts(running)["tuned"] == {"threads": 3, "queues": ["mail", "*"]}
        running.until(lambda: len(running.rows("Worker")) == 1, "only one is left")
        tuned(running, reset=True)
        goes_on_with(running, "threads", 1)

    def test_who_is_recycled_hands_it_down(self, supervised):
        running = supervised(
            task_modules=MODULES,
            workers=[{"threads": 1, "polling_interval": 0.05, "max_tasks": 5}],
        ).until_up()
        row = tuned(running, threads=3)
        goes_on_with(running, "threads", 3)
        for n in range(6):
            mark.enqueue(str(n))

        def is_replaced():
            return [each.pk for each in running.rows("Worker")] not in ([], [row.pk])

        running.until(is_replaced, "it has a successor")
        running.until(lambda: len(running.rows("Worker")) == 1, "it is gone")
        goes_on_with(running, "threads", 3)

    def test_where_news_arrives_it_is_heeded_at_once(self, supervised):
        if connection.vendor != "postgresql":
            pytest.skip("only PostgreSQL has notifications")
        running = supervised(
            task_modules=MODULES,
            process_heartbeat_interval=60,
            process_alive_threshold=300,
        ).until_up()
        running.until(lambda: "Notifications arrive" in running.log, "it hears")
        begun = time.monotonic()
        tuned(running, threads=5)
        goes_on_with(running, "threads", 5)
        assert time.monotonic() - begun < AT_ONCE
