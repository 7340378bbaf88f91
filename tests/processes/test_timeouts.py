"""Tasks whose time is up: interrupted, cancelled, or ended with their process."""

import time

import pytest

from robust_queue.models import Attempt, FailedExecution, FinishedExecution
from tests.support.in_process import in_process
from tests.support.invariants import state_of, states
from tests.support.supervisors import marks
from tests.testapp import failing_tasks as tasks
from tests.testapp.process_tasks import mark, rest

MODULES = ["tests.testapp.failing_tasks", "tests.testapp.process_tasks"]
TIMEOUT = "robust_queue.exceptions.TaskTimeout"


def failure_of(result):
    return FailedExecution.objects.get(pk=result.id)


@pytest.mark.django_db(transaction=True)
class TestInAWorker:
    @pytest.fixture
    def worker(self):
        with in_process(threads=2, coroutines=5) as each:
            yield each

    def failed(self, worker, result):
        worker.until(lambda: state_of(result) == "failed")
        return failure_of(result)

    def test_a_thread_is_interrupted(self, worker):
        row = self.failed(worker, tasks.loop_for_ever.enqueue())
        assert (row.kind, row.exception_class) == ("timed_out", TIMEOUT)
        assert row.message == "It took longer than 0:00:00.300000."
        assert "in loop_for_ever" in row.traceback, "it tells where the task was"
        assert "Interrupt" not in row.traceback

    def test_the_worker_asks_for_a_successor(self, worker):
        self.failed(worker, tasks.loop_for_ever.enqueue())
        worker.until(lambda: worker.page.is_tired)

    def test_one_that_swallows_it_is_late_all_the_same(self, worker):
        row = self.failed(worker, tasks.swallow_everything.enqueue())
        assert row.kind == "timed_out"

    def test_one_that_is_quick_is_left_alone(self, worker):
        results = [tasks.be_quick.enqueue(n) for n in range(50)]
        worker.until(lambda: all(state_of(each) == "finished" for each in results))
        assert not worker.page.is_tired

    def test_a_coroutine_is_cancelled(self, worker):
        row = self.failed(worker, tasks.wait_for_ever.enqueue())
        assert (row.kind, row.exception_class) == ("timed_out", TIMEOUT)
        assert not worker.page.is_tired, "that harms nobody"

    def test_a_coroutine_that_returns_all_the_same_is_late(self, worker):
        row = self.failed(worker, tasks.insist_on_waiting.enqueue())
        assert row.kind == "timed_out"


class TestUnderASupervisor:
    def start(self, supervised, **options):
        workers = [{"threads": 2, "polling_interval": 0.05}]
        return supervised(
            task_modules=MODULES, **{"workers": workers, "timeout_grace": 1, **options}
        ).until_up()

    def test_one_that_waits_in_c_ends_with_its_process(self, supervised):
        """And only it pays: what ran beside it goes back."""
        running = self.start(supervised)
        beside = rest.enqueue("beside", 4)
        running.until(lambda: "beside begins" in marks(), "it runs")
        stuck = tasks.sleep_in_c.enqueue(3600)
        running.until(lambda: state_of(stuck) == "failed", "it is timed out")
        row = failure_of(stuck)
        assert (row.kind, row.exception_class, row.attempts) == (
            "timed_out",
            TIMEOUT,
            1,
        )
        running.until(lambda: state_of(beside) == "finished", "the other has run")
        assert FinishedExecution.objects.get(pk=beside.id).attempts == 1
        assert marks("sleep") == ["sleep begins"]

    def test_others_are_served_within_the_grace(self, supervised):
        running = self.start(supervised, workers=[{"threads": 1}])
        tasks.sleep_in_c.enqueue(3600)
        running.until(lambda: marks("sleep"), "it runs")
        begun = time.monotonic()
        mark.enqueue("after")
        running.until(lambda: marks("after"), "the next one runs")
        # Its timeout, the grace, and a new process.
        assert time.monotonic() - begun < 0.5 + 1 + 5

    def test_timeouts_are_not_tried_again_unless_the_policy_says_so(self, supervised):
        running = self.start(supervised)
        result = tasks.sleep_in_c_again.enqueue(3600)
        running.until(lambda: state_of(result) == "failed", "it is given up")
        assert marks("again") == ["again begins"] * 2
        assert [each.kind for each in Attempt.objects.all()] == ["timed_out"]
        assert failure_of(result).attempts == 2

    def test_an_interrupted_worker_is_replaced_in_order(self, supervised):
        running = self.start(supervised)
        (before,) = running.pids()
        beside = rest.enqueue("beside", 2)
        running.until(lambda: "beside begins" in marks(), "it runs")
        late = tasks.loop_for_ever.enqueue()
        running.until(lambda: state_of(late) == "failed", "it is interrupted")
        running.until(lambda: before not in running.pids(), "it is replaced")
        assert state_of(beside) == "finished"
        assert marks("beside") == ["beside begins", "beside ends"], "it ran once"
        assert set(states().values()) == {"finished", "failed"}
