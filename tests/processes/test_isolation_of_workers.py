"""Isolated tasks under real supervisors: their workers die, stop and are replaced."""

import os
import signal
from pathlib import Path

import pytest

from robust_queue.models import FailedExecution, IsolatedRun, Process
from robust_queue.processes.exits import ExitCode
from tests.support.invariants import state_of
from tests.support.supervisors import is_alive, marks
from tests.testapp import isolated_tasks as tasks
from tests.testapp.models import Mark
from tests.testapp.process_tasks import mark


@pytest.fixture
def started(supervised):
    def start(*arguments, **options):
        modules = ["tests.testapp.process_tasks", "tests.testapp.isolated_tasks"]
        return supervised(*arguments, task_modules=modules, **options).until_up()

    return start


def pid_of(label):
    return Mark.objects.filter(label=label).latest("pk").pid


def heartbeat_of(supervisor):
    return Process.objects.get(kind="Supervisor", pid=supervisor.pid).last_heartbeat_at


def parent_of(pid):
    facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    return int(facts.split()[1])


def children_of(pid):
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in found.split()]


def test_the_process_of_a_task_hangs_from_its_worker(started):
    tasks.sleep.enqueue(60)
    supervisor = started()
    supervisor.until(lambda: marks() == ["sleeps"], "it runs")
    nursery = parent_of(pid_of("sleeps"))
    assert supervisor.pids() == [parent_of(nursery)]


def test_a_worker_without_isolated_tasks_has_no_nursery(supervised):
    supervisor = supervised().until_up()
    mark.enqueue("it")
    supervisor.until(lambda: marks() == ["it"], "it works")
    (worker,) = supervisor.pids()
    assert children_of(worker) == []


def test_a_worker_that_is_killed_takes_everything_along(started, tmp_path):
    path = tmp_path / "daemon"
    sleeping = tasks.sleep.enqueue(3600)
    daemon = tasks.daemon_and_sleep.enqueue(str(path))
    supervisor = started()
    supervisor.until(lambda: sorted(marks()) == ["daemon", "sleeps"], "both run")
    supervisor.until(lambda: IsolatedRun.objects.count() == 2, "that is told")
    (worker,) = supervisor.pids()
    pids = [pid_of("sleeps"), pid_of("daemon"), int(path.read_text())]
    pids.append(parent_of(pids[0]))
    os.kill(worker, signal.SIGKILL)
    supervisor.until(lambda: not any(map(is_alive, pids)), "all are gone")
    supervisor.until(lambda: state_of(sleeping) == state_of(daemon) == "failed")
    failed = FailedExecution.objects.get(pk=sleeping.id)
    assert failed.kind == "crashed"
    (run,) = IsolatedRun.objects.filter(job_id=sleeping.id)
    assert run.finished_at
    assert run.exit == "ended together with its worker"
    assert failed.exception_class == "robust_queue.processes.ProcessExitError"
    assert supervisor.stop() == ExitCode.DONE


def test_it_is_not_run_again_before_it_is_gone(started):
    """Even if nobody is there to end it: its end is waited for."""
    again = tasks.sleep_again.enqueue(3600)
    supervisor = started()
    supervisor.until(lambda: marks() == ["sleeps"], "it runs")
    (worker,) = supervisor.pids()
    pid = pid_of("sleeps")
    os.kill(parent_of(pid), signal.SIGSTOP)
    nursery = parent_of(pid)
    os.kill(worker, signal.SIGKILL)
    supervisor.until(lambda: worker not in children_of(supervisor.pid), "it is reaped")
    for _ in range(2):
        before = heartbeat_of(supervisor)
        supervisor.until(lambda: heartbeat_of(supervisor) > before)  # noqa: B023
    assert is_alive(pid)
    assert state_of(again) == "claimed", "there was time enough to give it back"
    os.kill(nursery, signal.SIGCONT)
    supervisor.until(lambda: len(marks("sleeps")) == 2, "it runs again")
    assert not is_alive(pid)


def test_a_nursery_that_dies_is_replaced_with_its_worker(started):
    result = tasks.sleep.enqueue(3600)
    supervisor = started()
    supervisor.until(lambda: marks() == ["sleeps"], "it runs")
    (worker,), pid = supervisor.pids(), pid_of("sleeps")
    os.kill(parent_of(pid), signal.SIGKILL)
    supervisor.until(lambda: state_of(result) == "failed", "that is noticed")
    assert not is_alive(pid)
    after = tasks.mark.enqueue("after")
    supervisor.until(lambda: state_of(after) == "finished", "a successor works")
    assert supervisor.pids() != [worker]
    assert supervisor.stop() == ExitCode.DONE


class TestStops:
    def test_running_ones_finish(self, started):
        result = tasks.sleep.enqueue(1)
        supervisor = started()
        supervisor.until(lambda: marks() == ["sleeps"], "it runs")
        assert supervisor.stop() == ExitCode.DONE
        assert state_of(result) == "finished"
        assert IsolatedRun.objects.get(job_id=result.id).finished_at

    def test_those_that_take_too_long_are_ended_and_go_back(self, started):
        result = tasks.sleep.enqueue(3600)
        supervisor = started(shutdown_timeout=0.5)
        supervisor.until(lambda: marks() == ["sleeps"], "it runs")
        assert supervisor.stop() == ExitCode.LEFT_BEHIND
        assert not is_alive(pid_of("sleeps"))
        assert state_of(result) == "ready"

    def test_all_are_ended_at_once_where_that_is_asked_for(self, started):
        result = tasks.sleep.enqueue(3600)
        supervisor = started()
        supervisor.until(lambda: marks() == ["sleeps"], "it runs")
        assert supervisor.stop(signal.SIGQUIT) == ExitCode.QUIT
        assert not is_alive(pid_of("sleeps"))
        assert state_of(result) == "ready"

    def test_nothing_stays_behind(self, started):
        tasks.mark.enqueue("it")
        supervisor = started()
        supervisor.until(lambda: marks() == ["it"], "it has run")
        nursery = parent_of(pid_of("it"))
        assert supervisor.stop() == ExitCode.DONE
        assert not is_alive(nursery)
        assert not is_alive(pid_of("it"))


def test_a_worker_serves_others_while_a_task_holds_on_to_the_interpreter(started):
    """In a thread it would take the whole worker along."""
    supervisor = started(timeout_grace=1)
    stuck = tasks.hold_on_to_the_interpreter.enqueue()
    supervisor.until(lambda: marks() == ["holds on"], "it holds on")
    (worker,) = supervisor.pids()
    beside = mark.enqueue("beside")
    supervisor.until(lambda: state_of(beside) == "finished", "others are served")
    supervisor.until(lambda: state_of(stuck) == "failed", "it is ended", timeout=5)
    assert FailedExecution.objects.get(pk=stuck.id).kind == "timed_out"
    assert supervisor.pids() == [worker]
    assert not is_alive(pid_of("holds on"))
    assert supervisor.stop() == ExitCode.DONE


def test_in_one_process_they_run_in_threads_and_a_notice_says_so(started):
    supervisor = started("--mode", "async")
    tasks.mark.enqueue("it")
    supervisor.until(lambda: marks() == ["it"], "it has run")
    assert pid_of("it") == supervisor.pid
    assert "isolated tasks run in threads" in supervisor.log
    assert supervisor.stop() == ExitCode.DONE
