"""Tasks in processes of their own: real forks, real signals, inside the test's process.

What happens when their worker dies or stops is asked in test_isolation_of_workers.py.
"""

import os
import signal
import socket
import sys
import time
from contextlib import contextmanager

import pytest
from django.utils import timezone, translation

from robust_queue.compat import signals
from robust_queue.lifecycle.discard import discard
from robust_queue.models import FailedExecution, FinishedExecution, IsolatedRun
from robust_queue.processes import isolation
from robust_queue.signals import attempt_snoozed
from tests.support.in_process import in_process
from tests.support.invariants import state_of
from tests.support.receivers import connected
from tests.support.supervisors import is_alive, marks
from tests.testapp import isolated_tasks as tasks

pytestmark = pytest.mark.django_db(transaction=True)

EXIT_ERROR = "robust_queue.processes.ProcessExitError"
GRACE = 1.0


@pytest.fixture(autouse=True)
def options(settings):
    settings.ROBUST_QUEUE = {
        "timeout_grace": GRACE,
        "task_modules": ["tests.testapp.isolated_tasks"],
    }
    return settings


def isolating(**configuration):
    return in_process(isolated=None, room=20, **configuration)


@pytest.fixture
def worker():
    with isolating(threads=2) as each:
        yield each


def over(*results):
    return all(
        state_of(each) in {"finished", "failed", "scheduled"} for each in results
    )


def run(worker, *results):
    worker.until(lambda: over(*results))
    worker.drain()


def returned(worker, result):
    run(worker, result)
    result.refresh()
    return result.return_value


@contextmanager
def told(signal):
    """What is told while the block runs."""
    heard = []
    with connected(signal, lambda **facts: heard.append(facts)):
        yield heard


def failure(result):
    return FailedExecution.objects.get(pk=result.id)


def run_of(result):
    return IsolatedRun.objects.get(job_id=result.id)


# ── Where they run ─────────────────────────────────────────────────────────────


def test_a_task_runs_in_a_process_of_its_own(worker):
    pid, pgid, sid = returned(worker, tasks.group.enqueue())
    assert pid != os.getpid()
    assert pid == pgid == sid
    assert returned(worker, tasks.whoami_in_a_thread.enqueue()) == os.getpid()


def test_the_process_is_used_again(worker):
    assert len({returned(worker, tasks.whoami.enqueue()) for _ in range(5)}) == 1


def test_several_run_at_a_time(worker):
    results = [tasks.sleep.enqueue(0.5) for _ in range(2)]
    worker.until(lambda: marks("sleeps") == ["sleeps"] * 2)
    assert marks("slept") == []
    run(worker, *results)


def test_coroutines_are_isolated_as_well(worker):
    first = returned(worker, tasks.whoami_async.enqueue())
    assert first != os.getpid()
    assert returned(worker, tasks.whoami_async.enqueue()) == first


def test_a_worker_may_isolate_everything(options):
    with isolating(isolation="process", threads=1) as worker:
        pid = returned(worker, tasks.whoami_in_a_thread.enqueue())
        assert pid != os.getpid()


def test_a_queue_may_be_isolated(options):
    options.ROBUST_QUEUE |= {"queue_defaults": {"wild": {"isolation": "process"}}}
    with isolating(threads=1) as worker:
        wild = tasks.whoami_in_a_thread.using(queue_name="wild")
        assert returned(worker, wild.enqueue()) != os.getpid()
        assert returned(worker, tasks.whoami_in_a_thread.enqueue()) == os.getpid()


def test_without_processes_for_them_they_run_in_threads():
    with in_process(isolated=0, threads=1, room=20) as worker:
        assert returned(worker, tasks.whoami.enqueue()) == os.getpid()


def test_who_asks_for_a_process_where_nobody_expected_it_is_refused(monkeypatch):
    """As if its module had been imported after the birth of the worker."""
    monkeypatch.setattr(isolation, "expected", lambda configuration: {"thread"})
    with isolating(threads=1) as worker:
        result, other = tasks.whoami.enqueue(), tasks.whoami_in_a_thread.enqueue()
        run(worker, result, other)
        failed = failure(result)
        assert failed.exception_class == "robust_queue.exceptions.IsolationError"
        assert "task_modules" in failed.message
        assert state_of(other) == "finished"


def test_language_and_time_zone_are_those_of_the_enqueuer(worker, options):
    options.ROBUST_QUEUE |= {"restore_language": True, "restore_time_zone": True}
    with translation.override("de"), timezone.override("Asia/Tokyo"):
        german = tasks.surroundings.enqueue()
    plain = tasks.surroundings.enqueue()
    path = "tests.testapp.isolated_tasks.surroundings"
    assert returned(worker, german) == [path, 1, "de", "Asia/Tokyo"]
    assert returned(worker, plain) == [path, 1, "en-us", "UTC"]


def test_the_database_is_used_there_with_connections_of_its_own(worker):
    run(worker, *(tasks.mark.enqueue(f"{n}") for n in range(3)))
    assert sorted(marks()) == ["0", "1", "2"]


# ── What goes wrong ────────────────────────────────────────────────────────────


def test_an_error_is_told_as_it_was_raised(worker):
    result = tasks.fail.enqueue("boom")
    run(worker, result)
    failed = failure(result)
    assert (failed.exception_class, failed.message) == ("builtins.ValueError", "boom")
    assert "isolated_tasks.py" in failed.traceback
    assert failed.kind == ""


@pytest.mark.parametrize(
    ("task", "args", "words"),
    [
        (tasks.segfault, (), "killed by SIGSEGV, a fault in native code?"),
        (tasks.exit_with, (3,), "exited with code 3"),
        (tasks.exit_with, (0,), "exited with code 0"),
        (tasks.kill_oneself, (), "killed by SIGKILL, out of memory?"),
    ],
)
def test_a_process_that_dies_is_told_of(worker, task, args, words):
    result, after = task.enqueue(*args), tasks.whoami.enqueue()
    run(worker, result, after)
    failed = failure(result)
    assert (failed.kind, failed.exception_class) == ("crashed", EXIT_ERROR)
    assert failed.message == f"The process of this job ended while it ran: {words}."
    assert run_of(result).exit == words
    assert state_of(after) == "finished"


def test_a_task_that_exits_politely_has_only_failed(worker):
    result = tasks.leave_politely.enqueue()
    run(worker, result)
    assert failure(result).exception_class == "builtins.SystemExit"


def test_a_crash_is_tried_again_where_that_is_declared(worker):
    result = tasks.exit_and_retry.enqueue("tried")
    run(worker, result)
    assert state_of(result) == "scheduled"
    assert marks() == ["tried"]


@pytest.mark.parametrize(
    "task",
    [
        tasks.loop_for_ever,
        tasks.hold_on_to_the_interpreter,
        tasks.sleep_for_ever,
        tasks.ignore_terms,
        tasks.sleep_async,
    ],
    ids=lambda task: task.func.__name__,
)
def test_the_time_is_up_whatever_it_does(worker, task):
    begun = time.monotonic()
    result = task.enqueue()
    beside = tasks.whoami.enqueue()
    run(worker, result, beside)
    assert time.monotonic() - begun < 0.5 + GRACE + 1.0
    failed = failure(result)
    assert failed.kind == "timed_out"
    assert failed.exception_class == "robust_queue.exceptions.TaskTimeout"
    assert not is_alive(run_of(result).pid)
    assert state_of(beside) == "finished"


def test_who_ignores_terms_is_killed(worker):
    result = tasks.ignore_terms.enqueue()
    run(worker, result)
    assert run_of(result).exit.startswith("killed by SIGKILL")


def test_a_task_whose_time_is_up_can_clean_up(worker, tmp_path):
    path = tmp_path / "told"
    run(worker, tasks.clean_up.enqueue(str(path)))
    assert path.read_text() == "cleaned up"


def test_a_timeout_is_retried_only_where_it_is_named(worker):
    result = tasks.too_long_and_not_retried.enqueue()
    run(worker, result)
    assert failure(result).kind == "timed_out"


def test_a_cancelled_task_can_notice(worker):
    result = tasks.until_cancelled.enqueue()
    worker.until(lambda: marks() == ["waits"])
    cancel(worker)
    run(worker, result)
    assert marks() == ["waits", "noticed"]
    assert failure(result).kind == "cancelled"


def test_a_cancelled_task_that_does_not_notice_is_ended(worker):
    result = tasks.sleep.enqueue(3600)
    worker.until(lambda: marks() == ["sleeps"])
    cancel(worker)
    run(worker, result)
    failed = failure(result)
    assert failed.kind == "cancelled"
    assert failed.exception_class == "robust_queue.exceptions.TaskCancelled"
    assert not is_alive(run_of(result).pid)


def cancel(worker):
    (held,) = worker.worker._held
    held.lane.cancel(held)


def test_terms_that_the_worker_does_not_mean_are_not_heeded(worker):
    """Some service managers send them to every process of a service."""
    result = tasks.sleep.enqueue(1)
    pid = worker.until(
        lambda: IsolatedRun.objects.filter(job_id=result.id, pid__gt=0).first()
    ).pid
    os.kill(pid, signal.SIGTERM)
    run(worker, result)
    assert state_of(result) == "finished"


# ── What others are told ───────────────────────────────────────────────────────


def test_the_end_is_told_by_the_worker(worker):
    with told(signals.task_finished) as heard:
        good, bad = tasks.whoami.enqueue(), tasks.fail.enqueue("boom")
        run(worker, good, bad)
        worker.until(lambda: len(heard) == 2)
    results = {each["task_result"].id: each["task_result"] for each in heard}
    assert results[good.id].return_value != os.getpid()
    (error,) = results[bad.id].errors
    assert error.exception_class is ValueError


def test_the_error_that_is_in_flight_has_the_traceback_as_a_note(worker, caplog):
    result = tasks.fail.enqueue("boom")
    run(worker, result)
    worker.until(lambda: "IsolatedTaskError: ValueError: boom" in caplog.text)
    assert "isolated_tasks.py" in caplog.text


def test_who_snoozes_tells_why(worker):
    with told(attempt_snoozed) as heard:
        result = tasks.snooze.enqueue("too early")
        run(worker, result)
        worker.until(lambda: heard)
    assert heard[0]["reason"] == "too early"
    assert state_of(result) == "scheduled"


def test_what_is_discarded_is_no_error(worker):
    result = tasks.discard.enqueue("of no use")
    run(worker, result)
    assert failure(result).kind == "discarded"


# ── What they leave behind ─────────────────────────────────────────────────────


def test_processes_that_were_left_behind_are_ended(worker, tmp_path):
    result = tasks.leave_a_child.enqueue()
    left = returned(worker, result)
    assert not is_alive(left)
    assert run_of(result).exit == "left processes behind, which were ended"
    assert not is_alive(run_of(result).pid)


@pytest.mark.skipif(sys.platform != "linux", reason="found by the kernel of Linux")
@pytest.mark.parametrize("task", [tasks.leave_a_daemon, tasks.sleep_beside_a_daemon])
def test_daemons_are_found_and_ended(worker, tmp_path, task):
    path = tmp_path / "pid"
    run(worker, task.enqueue(str(path)))
    assert not is_alive(int(path.read_text()))


def test_a_process_in_which_a_thread_runs_on_is_not_used_again(worker):
    pid = returned(worker, tasks.leave_a_thread.enqueue())
    assert returned(worker, tasks.whoami.enqueue()) != pid
    assert not is_alive(pid)


# ── Limits ─────────────────────────────────────────────────────────────────────


def test_memory_can_be_limited():
    limit = 200 * 1024**2
    with isolating(threads=1, memory_limit=limit) as worker:
        much, little = tasks.eat.enqueue(300), tasks.eat.enqueue(20)
        run(worker, much, little)
        assert failure(much).exception_class == "builtins.MemoryError"
        assert state_of(little) == "finished"


def test_computing_can_be_limited():
    with isolating(threads=1, cpu_limit=1) as worker:
        result, after = tasks.compute.enqueue(), tasks.whoami.enqueue()
        run(worker, result, after)
        assert "SIGXCPU" in failure(result).message
        assert state_of(after) == "finished"


# ── What is kept of them ───────────────────────────────────────────────────────


def test_where_and_when_they_run_is_shown_while_they_do(worker):
    before = timezone.now()
    result = tasks.sleep.enqueue(3600)
    found = worker.until(lambda: IsolatedRun.objects.filter(job_id=result.id).first())
    assert found.node == socket.gethostname()
    assert is_alive(found.pid)
    assert before <= found.reserved_at <= found.started_at <= timezone.now()
    assert (found.finished_at, found.exit) == (None, "")


def test_what_they_write_is_kept(worker):
    result = tasks.write.enqueue("hello", 2)
    run(worker, result)
    found = run_of(result)
    assert found.output == "hello\nhello\nto stderr\nfrom a child\n"
    assert found.finished_at >= found.started_at


def test_but_only_the_end_of_it(worker):
    result = tasks.write.enqueue("x" * 999, 1000)
    run(worker, result)
    found = run_of(result).output
    assert len(found) == 64 * 1024
    assert found.endswith("x\nto stderr\nfrom a child\n")


def test_what_was_written_before_a_crash_is_kept(worker):
    result = tasks.write_and_die.enqueue()
    run(worker, result)
    assert run_of(result).output == "last words\n"


def test_one_does_not_have_the_output_of_another(worker):
    first, second = tasks.write.enqueue("first", 1), tasks.write.enqueue("second", 1)
    run(worker, first, second)
    assert "first" not in run_of(second).output


def test_a_job_that_leaves_no_trace_leaves_none_here(options):
    options.ROBUST_QUEUE |= {"preserve_finished_jobs": False}
    with isolating(threads=2) as worker:
        for _ in range(3):
            tasks.nothing.enqueue()
        tasks.sleep.enqueue(0.5)
        worker.until(lambda: IsolatedRun.objects.filter(finished_at=None).exists())
        worker.until(lambda: marks("slept"))
        worker.drain()
        assert not IsolatedRun.objects.exists()


def test_a_job_that_is_discarded_takes_it_along(worker):
    result = tasks.fail.enqueue("boom")
    run(worker, result)
    assert IsolatedRun.objects.count() == 1
    assert discard("default", result.id)
    assert not IsolatedRun.objects.exists()


# ── Speed ──────────────────────────────────────────────────────────────────────


def test_a_process_that_is_used_again_costs_little(worker):
    """Everything included: to claim it, to hand it over, and to settle it."""
    returned(worker, tasks.nothing.enqueue())
    results = [tasks.nothing.enqueue() for _ in range(100)]
    begun = time.monotonic()
    worker.until(lambda: FinishedExecution.objects.count() > 100)
    assert (time.monotonic() - begun) / len(results) < 0.02


class TestWhatHasEnded:
    """Whatever goes wrong behind a task: what it has come to is told."""

    def test_it_has_closed_what_it_writes_to(self, worker):
        result = tasks.close_what_it_writes_to.enqueue()
        assert returned(worker, result) == "done"

    def test_its_error_cannot_be_shown(self, worker):
        result = tasks.fail_without_a_word.enqueue()
        run(worker, result)
        assert failure(result).exception_class.endswith("isolated_tasks.MuteError")
