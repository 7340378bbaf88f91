"""Quiet workers, workers that are restarted, supervisors that are stopped."""

import json
import math
import os
from uuid import uuid4

import pytest

from robust_queue.lifecycle.quiet import quiet_process, stop_process, wake_process
from robust_queue.models import Process, Tuning
from robust_queue.processes import tuner
from robust_queue.processes.memory import rss
from robust_queue.processes.modes import Mode
from robust_queue.processes.page import Page
from robust_queue.processes.supervisor import Supervisor
from robust_queue.processes.threaded import ThreadedFamily
from robust_queue.processes.titles import title_of
from tests.support.in_process import in_process
from tests.support.invariants import state_of
from tests.support.processes import a_process
from tests.support.statements import statements
from tests.support.supervisors import marks
from tests.testapp.process_tasks import mark, rest

MODULES = ["tests.testapp.process_tasks"]


def running(prefix):
    return len({label.split()[0] for label in marks(prefix)})


@pytest.mark.django_db(transaction=True)
class TestAWorker:
    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch):
        monkeypatch.setattr(tuner, "BETWEEN_QUESTIONS", 0.01)

    @pytest.fixture
    def worker(self):
        with in_process(threads=1, coroutines=0, room=10) as each:
            yield each

    def test_it_finishes_what_it_runs_and_gives_back_the_rest(self, worker):
        results = [rest.enqueue(f"long{n}", 1) for n in range(4)]
        worker.until(lambda: running("long") == 1)
        quiet_process("default", Process.objects.get().pk)
        worker.until(lambda: worker.worker._tuner.is_quiet)
        worker.until(lambda: not worker.worker.is_busy)
        states = sorted(state_of(each) for each in results)
        assert states == ["finished", "ready", "ready", "ready"]
        worker.worker.turn()
        assert sorted(state_of(each) for each in results) == states
        wake_process("default", Process.objects.get().pk)
        worker.until(lambda: state_of(results[-1]) == "finished")

    def test_it_asks_for_no_jobs(self, worker, monkeypatch):
        quiet_process("default", Process.objects.get().pk)
        worker.until(lambda: worker.worker._tuner.is_quiet)
        worker.worker.turn()
        monkeypatch.setattr(tuner, "BETWEEN_QUESTIONS", 60)
        worker.until(lambda: worker.worker._tuner._asked_for(is_told=True))
        with statements() as sent:
            worker.worker.turn()
        assert sent == []

    def test_what_its_household_is_asked_counts_as_well(self, worker):
        chief, around = uuid4(), worker.worker._around
        object.__setattr__(around, "supervisor_id", chief)
        Tuning.objects.create(process_id=chief, is_quiet=True)
        worker.until(lambda: worker.worker._tuner.is_quiet)
        assert worker.page.tuning == "{}", "its successor reads that by itself"
        Tuning.objects.filter(pk=chief).update(is_quiet=False, is_to_stop=True)
        worker.until(lambda: worker.page.is_calling)
        assert not worker.worker._tuner.is_quiet
        assert not worker.page.is_tired

    def test_it_asks_for_a_successor(self, worker):
        quiet_process("default", Process.objects.get(kind="Worker").pk)
        stop_process("default", Process.objects.get(kind="Worker").pk)
        worker.until(lambda: worker.page.is_tired)
        assert json.loads(worker.page.tuning) == {"quiet": True}

    def test_who_inherits_it_takes_nothing_from_the_first_turn_on(self):
        result = mark.enqueue("it")
        with in_process(threads=1, coroutines=0) as worker:
            worker.page.show_tuning('{"quiet": true}')
            heir = tuner.Tuner(
                worker.worker._configuration,
                database="default",
                around=worker.worker._around,
                hears=lambda: False,
                tire=lambda reason: None,
            )
            assert heir.is_quiet
            worker.worker._tuner = heir
            worker.worker.turn()
            assert heir.wanted(is_told=True) is None
        assert state_of(result) == "ready"


class TestParts:
    @pytest.mark.parametrize("is_alone", [True, False])
    def test_inside_another_program_tasks_may_take_as_long_as_they_like(self, is_alone):
        supervisor = Supervisor("default", [], family=ThreadedFamily())
        supervisor._is_alone = is_alone
        supervisor._heed_orders()
        assert supervisor._mode is Mode.RUNNING
        supervisor._books.is_to_stop = True
        supervisor._heed_orders()
        assert supervisor._mode is Mode.STOPPING
        assert (supervisor._stop_by < math.inf) is is_alone

    def test_a_call_is_taken_back(self):
        page = Page(1)
        assert not page.is_calling
        page.show_call()
        assert page.is_calling
        assert not page.is_tired
        page.show_call(is_calling=False)
        assert not page.is_calling

    def test_the_title_tells(self):
        facts = {"queues": ["mail"], "threads": 3, "quiet": True}
        assert title_of("Worker", facts).endswith("mail (3 threads, quiet)")

    def test_the_memory_of_this_process(self):
        assert 1024**2 < rss() < 1024**4

    @pytest.mark.django_db
    def test_memory_comes_with_the_heartbeat(self):
        identity = a_process()
        with statements() as sent:
            assert Process.objects.beat(identity, memory=7 * 1024**3)
        assert len(sent) == 1
        assert Process.objects.get(pk=identity).memory == 7 * 1024**3
        assert Process.objects.beat(identity)
        assert Process.objects.get(pk=identity).memory == 7 * 1024**3


# ── Across processes ───────────────────────────────────────────────────────────


def test_quiet_resume_restart_and_stop(supervised):
    # Long heartbeats: nothing of this waits for one.
    running = supervised(
        task_modules=MODULES,
        workers=[{"threads": 1, "polling_interval": 0.05}],
        process_heartbeat_interval=60,
        process_alive_threshold=300,
    ).until_up()

    def worker():
        return max(running.rows("Worker"), key=lambda each: each.created_at)

    def is_quiet():
        return json.loads(worker().metadata).get("quiet", False)

    chief = Process.objects.get(kind="Supervisor", pid=running.pid)
    assert chief.memory > 1024**2
    assert worker().memory > 1024**2
    first = rest.enqueue("first", 1)
    running.until(lambda: marks("first"), "it runs")
    quiet_process("default", chief.pk)
    running.until(is_quiet, "the household is quiet")
    left = mark.enqueue("left")
    running.until(lambda: state_of(first) == "finished", "what runs goes on")

    before = worker()
    stop_process("default", before.pk)
    running.until(lambda: worker().pk != before.pk, "it has a successor")
    running.until(lambda: len(running.rows("Worker")) == 1, "it is gone")
    running.until(is_quiet, "so is whoever replaces it")
    assert state_of(left) == "ready"

    wake_process("default", chief.pk)
    running.until(lambda: state_of(left) == "finished", "it works again")
    assert not is_quiet()
    after = worker()
    assert after.pk != before.pk
    assert "asks for a successor" in running.log
    assert running.log.count("asks for a successor") == 1

    stop_process("default", chief.pk)
    assert running.wait() == os.EX_OK
    assert "somebody has asked for it" in running.log
