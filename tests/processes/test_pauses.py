"""Pauses as workers and dispatchers meet them."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.pause import pause
from robust_queue.lifecycle.pause_task import pause_task, resume_task
from robust_queue.models import Pause, TaskPause
from robust_queue.processes import paused_tasks
from robust_queue.processes.reopening import PAUSES, Reopening
from tests.support.in_process import in_process
from tests.support.invariants import state_of, states
from tests.support.statements import statements
from tests.support.supervisors import marks
from tests.testapp.process_tasks import mark, rest

PATH = mark.module_path
MODULES = ["tests.testapp.process_tasks"]
SECOND = timedelta(seconds=1)


def about(name, found):
    return [sql for sql in found if f"robust_queue_{name}" in sql]


@pytest.mark.django_db(transaction=True)
class TestAWorker:
    @pytest.fixture
    def worker(self):
        with in_process(threads=2, coroutines=0) as each:
            yield each

    def test_sets_the_jobs_of_a_paused_task_aside_each_of_them_once(self, worker):
        pause_task("default", PATH)
        results = [mark.enqueue(f"paused {n}") for n in range(7)]
        other = rest.enqueue("other", 0)
        with statements() as found:
            worker.until(lambda: state_of(other) == "finished")
            worker.until(lambda: set(states().values()) == {"scheduled", "finished"})
        assert not marks("paused")
        moved = [s for s in about("scheduled_executions", found) if "INSERT" in s]
        rows = sum(statement.count("9000-01-01") for statement in moved)
        assert rows == len(results)
        assert not worker.worker.is_busy

    def test_knows_of_a_pause_a_second_after_it_was_made(self, worker, monkeypatch):
        first = mark.enqueue("first")
        worker.until(lambda: state_of(first) == "finished")
        pause_task("default", PATH)
        second = mark.enqueue("second")
        worker.until(lambda: state_of(second) != "ready")
        monkeypatch.setattr(paused_tasks.clock, "now", lambda: time.monotonic() + 2e9)
        third = mark.enqueue("third")
        worker.until(lambda: state_of(third) == "scheduled")
        assert not marks("third")

    def test_begins_them_when_they_are_resumed(self, worker, monkeypatch):
        monkeypatch.setattr(paused_tasks, "BETWEEN_QUESTIONS", 0)
        pause_task("default", PATH)
        result = mark.enqueue("it")
        worker.until(lambda: state_of(result) == "scheduled")
        resume_task("default", PATH)
        assert dispatch_due("default") == 1
        worker.until(lambda: state_of(result) == "finished")
        assert marks() == ["it"]

    def test_asks_for_nothing_while_it_is_idle(self, worker):
        worker.worker.turn()
        with statements() as found:
            for _ in range(20):
                worker.worker.turn()
        assert found
        assert about("task_pauses", found) == []

    def test_asks_once_for_many_claims(self, worker):
        results = [mark.enqueue(str(n)) for n in range(20)]
        begun = time.monotonic()
        with statements() as found:
            worker.until(lambda: all(state_of(r) == "finished" for r in results))
        seconds = time.monotonic() - begun
        assert 1 <= len(about("task_pauses", found)) <= 1 + seconds


@pytest.mark.django_db(transaction=True)
class TestReopening:
    def reopening(self):
        """One that has been there for a moment."""
        it = Reopening("default")
        it._next_look = 0.0
        return it

    def test_it_looks_at_the_end_that_it_knows_of(self):
        reopening = self.reopening()
        reopening.look_if_due(PAUSES)
        assert reopening.pause > 20
        pause("default", "mail", until=2 * SECOND)
        pause_task("default", PATH, until=timedelta(hours=1))
        reopening = self.reopening()
        reopening.look_if_due(PAUSES)
        assert 0 < reopening.pause <= 2
        Pause.objects.update(until=timezone.now())
        reopening = self.reopening()
        reopening.look_if_due(PAUSES)
        assert not Pause.objects.exists()
        assert TaskPause.objects.exists()
        assert reopening.pause > 20

    @pytest.mark.parametrize(("tables", "most"), [(PAUSES, 3), (set(), 0)])
    def test_what_an_idle_dispatcher_asks(self, tables, most):
        reopening = self.reopening()
        with statements() as found:
            for _ in range(10):
                reopening.look_if_due(tables)
        assert len(found) == most, "in half a minute"


class TestAcrossProcesses:
    def test_a_task_that_is_paused_for_a_while(self, supervised):
        pause_task("default", PATH, until=2 * SECOND)
        result = mark.enqueue("it")
        other = rest.enqueue("other", 0)
        running = supervised(task_modules=MODULES).until_up()
        running.until(lambda: state_of(other) == "finished", "others run")
        running.until(lambda: state_of(result) == "finished", "it runs in the end")
        running.until(lambda: not TaskPause.objects.exists(), "the pause is gone")

    def test_a_queue_that_is_paused_for_a_while(self, supervised):
        pause("default", "default", until=2 * SECOND)
        end = Pause.objects.get().until
        result = mark.enqueue("it")
        running = supervised(task_modules=MODULES).until_up()
        running.until(lambda: state_of(result) == "finished", "it runs in the end")
        assert timezone.now() >= end
        running.until(lambda: not Pause.objects.exists(), "the pause is gone")
        told = "Queue 'default' of database 'default' is open again."
        running.until(lambda: told in running.log, "it is told")
