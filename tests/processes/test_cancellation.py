"""Jobs that are cancelled while a worker holds them, across processes."""

import time

import pytest

from robust_queue.lifecycle.cancel import cancel
from robust_queue.models import Cancellation, FailedExecution, ReadyExecution
from robust_queue.processes.foresight import Foresight
from tests.support.in_process import in_process
from tests.support.invariants import state_of
from tests.support.supervisors import marks
from tests.testapp import failing_tasks as tasks
from tests.testapp.process_tasks import rest

MODULES = ["tests.testapp.failing_tasks", "tests.testapp.process_tasks"]
CANCELLED = "robust_queue.exceptions.TaskCancelled"

COOPERATIVE = [
    tasks.wait_to_be_cancelled,
    tasks.wait_without_context,
    tasks.wait_in_a_coroutine,
]


def failure_of(result):
    return FailedExecution.objects.get(pk=result.id)


@pytest.mark.django_db(transaction=True)
class TestInAWorker:
    @pytest.fixture
    def worker(self):
        with in_process(threads=1, coroutines=5, room=5) as each:
            yield each

    @pytest.mark.parametrize("task", COOPERATIVE, ids=lambda task: task.name)
    def test_it_ends_where_it_can(self, worker, task):
        result = task.enqueue()
        worker.until(lambda: any("begins" in each for each in marks()))
        assert cancel("default", result.id)
        worker.until(lambda: state_of(result) == "failed")
        row = failure_of(result)
        assert (row.kind, row.exception_class) == ("cancelled", CANCELLED)
        assert not worker.page.is_tired

    @pytest.mark.parametrize("attempts", [0, 1])
    def test_a_coroutine_may_look_for_itself(self, worker, attempts):
        """Also if it was begun aside, as every later attempt is."""
        result = tasks.ask_whether_it_is_cancelled.enqueue()
        ReadyExecution.objects.update(attempts=attempts)
        worker.until(lambda: marks("asking"))
        cancel("default", result.id)
        worker.until(lambda: state_of(result) == "finished")

    def test_the_request_is_gone_with_its_job(self, worker):
        result = tasks.wait_to_be_cancelled.enqueue()
        worker.until(lambda: marks("wait"))
        cancel("default", result.id)
        worker.until(lambda: state_of(result) == "failed")
        worker.drain()
        assert not Cancellation.objects.exists()

    def test_one_that_finishes_has_finished(self, worker):
        result = tasks.finish_although_cancelled.enqueue()
        worker.until(lambda: marks("stubborn"))
        cancel("default", result.id)
        worker.until(lambda: state_of(result) == "finished")

    def test_one_that_is_held_and_has_not_begun_never_begins(self, worker, monkeypatch):
        monkeypatch.setattr(Foresight, "ahead", property(lambda self: 3))
        monkeypatch.setattr("robust_queue.processes.lanes.STALE", 60)
        first = rest.enqueue("first", 1.5)
        second = rest.enqueue("second", 0)
        worker.until(lambda: state_of(second) == "claimed" and marks("first"))
        cancel("default", second.id)
        worker.until(lambda: state_of(second) == "failed")
        assert state_of(first) == "claimed", "meanwhile"
        assert not marks("second")
        worker.until(lambda: state_of(first) == "finished")


class TestAcrossProcesses:
    @pytest.mark.parametrize(("notifications", "seconds"), [(True, 1.0), (False, 5.0)])
    def test_within_seconds(self, supervised, notifications, seconds):
        running = supervised(task_modules=MODULES, notifications=notifications)
        running.until_up()
        result = tasks.wait_to_be_cancelled.enqueue()
        running.until(lambda: marks("wait"), "it runs")
        begun = time.monotonic()
        cancel("default", result.id)
        running.until(lambda: state_of(result) == "failed", "it is cancelled")
        # What a busy machine may add is no part of the promise.
        assert time.monotonic() - begun < seconds + 1.5
        running.until(
            lambda: not Cancellation.objects.exists(), "the request is gone", timeout=20
        )
