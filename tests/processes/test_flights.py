"""Coroutines in a worker of the test's own process: outcomes, cancelling, blocking."""

import logging
import re
import threading
from uuid import UUID

import pytest
from django.db import connection

from robust_queue import enqueue_all
from robust_queue.lifecycle.cancel import cancel
from robust_queue.models import ClaimedExecution, FailedExecution, ReadyExecution
from robust_queue.processes import watchdog
from robust_queue.processes.page import Stage
from tests.support.in_process import in_process
from tests.support.invariants import state_of, states
from tests.support.supervisors import until
from tests.support.witness import Witness
from tests.testapp import coroutine_tasks as tasks
from tests.testapp import tasks as synchronous
from tests.testapp.models import Customer
from tests.testapp.process_tasks import rest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def worker():
    before = set(threading.enumerate())
    with in_process(threads=1, coroutines=5) as each:
        yield each
    until(lambda: set(threading.enumerate()) <= before, "no thread is left")


@pytest.fixture
def witness(tmp_path, monkeypatch):
    witness = Witness(tmp_path)
    for name, value in witness.environment.items():
        monkeypatch.setenv(name, value)
    return witness


def finished(worker, *results):
    """What these have returned, once they have ended."""
    worker.until(lambda: not {"ready", "claimed"} & {*map(state_of, results)})
    for each in results:
        each.refresh()
        assert each.status == "SUCCESSFUL", each.errors
    return [each.return_value for each in results]


def failure(worker, result):
    """With what this has failed, once it has."""
    worker.until(lambda: state_of(result) == "failed")
    return FailedExecution.objects.get(pk=result.id)


class TestOutcomes:
    def test_results_are_recorded(self, worker):
        results = [synchronous.add_async.enqueue(n, b=1) for n in range(20)]
        assert finished(worker, *results) == list(range(1, 21))

    def test_all_run_on_one_loop_and_none_in_a_thread_of_the_pool(self, worker):
        results = [tasks.where_am_i.enqueue() for _ in range(10)]
        assert len({tuple(each) for each in finished(worker, *results)}) == 1

    def test_the_context_is_given(self, worker):
        assert finished(worker, tasks.attempt_number.enqueue(extra=10)) == [11]

    def test_each_has_a_context_of_its_own(self, worker):
        results = [tasks.travel.enqueue() for _ in range(10)]
        assert finished(worker, *results) == [["en-us", "nothing", "de"]] * 10

    @pytest.mark.parametrize(
        ("task", "args", "exception_class"),
        [
            (tasks.fail, ["boom"], "builtins.ValueError"),
            (tasks.leave_politely, [], "builtins.SystemExit"),
            (tasks.interrupt, [], "builtins.KeyboardInterrupt"),
            (tasks.run_out_of_memory, [], "builtins.MemoryError"),
            (tasks.cancel_itself, [], "asyncio.exceptions.CancelledError"),
            (tasks.take_too_long, [], "builtins.TimeoutError"),
            (tasks.start_something_that_exits, [], "builtins.SystemExit"),
            (tasks.return_a_function, [], "builtins.TypeError"),
        ],
    )
    def test_whatever_is_raised_is_a_failure_of_that_job_alone(
        self, worker, task, args, exception_class
    ):
        beside = tasks.nap.enqueue(0.2)
        failed = failure(worker, task.enqueue(*args))
        assert failed.exception_class == exception_class
        assert finished(worker, beside, tasks.nap.enqueue(0)) == [None, None]

    def test_arguments_that_cannot_be_read_fail_before_the_loop(self, worker):
        customer = Customer.objects.create(name="gone")
        result = synchronous.add_async.enqueue(customer)
        customer.delete()
        assert "DoesNotExist" in failure(worker, result).traceback
        assert worker.worker._crew.coroutines.room == 5

    def test_without_coroutines_they_run_in_the_threads(self):
        with in_process(threads=2, coroutines=0) as worker:
            results = [tasks.where_am_i.enqueue() for _ in range(4)]
            assert finished(worker, *results)
            assert worker.worker._crew.coroutines._loop is None

    def test_nothing_is_started_for_synchronous_tasks(self, worker):
        assert finished(worker, synchronous.add.enqueue(1)) == [1]
        assert worker.worker._crew.coroutines._loop is None
        assert worker.worker._crew.coroutines._helpers is None


class TestRoom:
    def test_as_many_run_at_once_as_there_is_room_for(self, worker, witness):
        enqueue_all(tasks.attend.bind(f"{n}", 60) for n in range(8))
        worker.until(lambda: len(witness.count("begins")) == 5)
        worker.until(lambda: ClaimedExecution.objects.count() == 5)
        assert ReadyExecution.objects.count() == 3
        enqueue_all(synchronous.add.bind(n) for n in range(3))
        assert len(witness.count("begins")) == 5

    def test_what_no_thread_is_free_for_goes_back_and_coroutines_go_on(self, worker):
        long = rest.enqueue("long", 1)
        worker.until(lambda: state_of(long) == "claimed")
        waiting = rest.enqueue("waiting", 0)
        behind = [tasks.nap.enqueue(0) for _ in range(3)]
        ahead = tasks.nap.using(priority=-1).enqueue(0)
        finished(worker, ahead)
        assert state_of(waiting) == "ready"
        finished(worker, long, waiting, *behind)
        waiting.refresh()
        assert waiting.attempts == 1

    def test_busy_threads_do_not_keep_coroutines_waiting(self, worker):
        long = rest.enqueue("long", 1.5)
        worker.until(lambda: state_of(long) == "claimed")
        finished(worker, *(tasks.nap.enqueue(0.01) for _ in range(20)))
        assert state_of(long) == "claimed"
        finished(worker, long)

    def test_nothing_begins_once_it_is_to_stop(self, worker, witness):
        tasks.attend.enqueue("first", 0.2)
        worker.until(lambda: witness.has("begins", "first"))
        enqueue_all(tasks.attend.bind(f"{n}") for n in range(5))
        worker.worker.stop()
        worker.drain()
        assert witness.count("begins") == {"first": 1}
        assert sorted(states().values()) == ["finished"] + ["ready"] * 5


class TestCancelling:
    def test_a_cancelled_coroutine_cleans_up_and_has_failed(self, worker, witness):
        result, other = tasks.clean_up.enqueue("it"), tasks.nap.enqueue(0.5)
        worker.until(lambda: witness.has("begins", "it"))
        assert cancel("default", result.id)
        failed = failure(worker, result)
        assert failed.exception_class == "robust_queue.exceptions.TaskCancelled"
        assert witness.has("cleans-up", "it")
        assert finished(worker, other) == [None]
        assert not cancel("default", result.id)

    def test_nothing_is_cancelled_where_nothing_runs(self, worker):
        result = tasks.nap.enqueue(0)
        finished(worker, result)
        assert not cancel("default", result.id)

    def test_one_that_catches_it_has_not_failed(self, worker, witness):
        result = tasks.insist.enqueue("it")
        worker.until(lambda: witness.has("begins", "it"))
        assert cancel("default", result.id)
        assert finished(worker, result) == ["it"]

    def test_what_is_given_up_has_come_to_nothing(self, worker, witness):
        """Its claim is the supervisor's to return; who finishes anyway is recorded."""
        cleaning, insisting = tasks.clean_up.enqueue("one"), tasks.insist.enqueue("two")
        worker.until(lambda: len(witness.count("begins")) == 2)
        worker.worker.stop()
        worker.worker.give_up()
        assert witness.has("cleans-up", "one")
        assert witness.has("insists", "two")
        worker.until(lambda: state_of(insisting) == "finished")
        assert worker.worker.is_busy
        assert state_of(cleaning) == "claimed"
        (record,) = worker.page.records()
        assert (record.stage, record.job_id) == (Stage.STARTED, UUID(cleaning.id))

    def test_giving_up_does_not_wait_for_what_blocks(self, worker, monkeypatch):
        monkeypatch.setattr(watchdog, "PATIENCE", 10)
        tasks.is_blocked.clear()
        result = tasks.block.enqueue(1)
        worker.until(tasks.is_blocked.is_set)
        worker.worker.stop()
        worker.worker.give_up()
        assert state_of(result) == "claimed"
        worker.until(lambda: state_of(result) == "finished")


def _is_started(page):
    return [each for each in page.records() if each.stage is Stage.STARTED]


class TestDatabase:
    def test_the_async_orm_and_synchronous_code(self, worker):
        results = [tasks.count_customers.enqueue(f"{n}") for n in range(10)]
        returned = finished(worker, *results)
        assert returned == [[[f"{n}"], 1, False] for n in range(10)]

    def test_there_and_back_again(self, worker):
        assert finished(worker, tasks.there_and_back.enqueue("Ann")) == ["Ann"]

    def test_transactions_inside_a_synchronous_call(self, worker):
        failed = failure(worker, tasks.rename_in_transaction.enqueue("Ann"))
        assert failed.message == "Ann"
        assert not Customer.objects.exists()

    def test_a_transaction_left_open_is_noticed_at_once(self, worker):
        failed = failure(worker, tasks.leave_a_transaction_open.enqueue())
        assert failed.message == (
            "tests.testapp.coroutine_tasks.leave_a_transaction_open left a transaction "
            "open on 'default'. It was rolled back."
        )
        finished(worker, tasks.there_and_back.enqueue("seen"))
        assert Customer.objects.filter(name="seen").exists()

    @pytest.mark.skipif("sqlite" in connection.vendor, reason="SQLite has no sessions")
    def test_the_session_is_kept_until_a_statement_breaks(self, worker):
        first, second = finished(
            worker, tasks.tell_session.enqueue(), tasks.tell_session.enqueue()
        )
        assert first == second
        failure(worker, tasks.break_a_statement.enqueue())
        (third,) = finished(worker, tasks.tell_session.enqueue())
        assert third != first


class TestBlocking:
    @pytest.fixture
    def warnings(self, caplog):
        def read():
            told = (each.getMessage() for each in caplog.records)
            return [each for each in told if "blocks the event loop" in each]

        with caplog.at_level(logging.WARNING, logger="robust_queue"):
            yield read

    def test_a_blocking_call_is_named_once(self, worker, warnings):
        beside = tasks.nap.enqueue(1.5)
        worker.until(lambda: _is_started(worker.page))
        results = [tasks.block.enqueue(0.6) for _ in range(2)]
        finished(worker, beside, *results)
        (warning,) = warnings()
        assert re.match(
            r"tests.testapp.coroutine_tasks.block blocks the event loop, and with it "
            r"[12] other coroutines?: tests/testapp/coroutine_tasks.py:\d+ in block: "
            r"time.sleep\(seconds\) \(job ",
            warning,
        )
        assert any(each.id in warning for each in results)
        assert warning.endswith(
            ". Use await asyncio.sleep(), an async client, or asyncio.to_thread()."
        )

    def test_so_is_one_in_a_task_that_a_coroutine_has_started(self, worker, warnings):
        finished(worker, tasks.block_in_a_task_of_its_own.enqueue(0.6))
        (warning,) = warnings()
        assert " in sleep: time.sleep(seconds)" in warning

    def test_many_that_take_a_little_each_do_not_block(self, warnings):
        with in_process(threads=1, coroutines=20) as worker:
            enqueue_all(tasks.block.bind(0.04) for _ in range(20))
            worker.until(lambda: set(states().values()) == {"finished"})
        assert warnings() == []
