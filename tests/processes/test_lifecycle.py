"""The life of supervisors and workers, with real processes and real signals."""

import os
from signal import SIGINT, SIGKILL, SIGQUIT, SIGTERM

import pytest

from robust_queue.models import ClaimedExecution, FailedExecution, Process
from robust_queue.processes.exits import ExitCode
from tests.support.invariants import state_of, states
from tests.support.supervisors import is_alive, marks, until
from tests.testapp.process_tasks import exit_at_once, fail, mark, rest


def all_are(state, *results):
    return all(state_of(each) == state for each in results)


def test_jobs_of_many_queues_run(supervised):
    results = [mark.using(queue_name=f"queue_{n % 7}").enqueue(n) for n in range(20)]
    supervisor = supervised().until_up()
    supervisor.until(lambda: all_are("finished", *results), "all have run")
    assert supervisor.stop() == ExitCode.DONE
    assert sorted(map(int, marks())) == list(range(20))
    assert not Process.objects.exists()
    assert not supervisor.pidfile.exists()


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_graceful_stop_lets_running_jobs_finish(supervised, number):
    first, second = rest.enqueue("first", 1), rest.enqueue("second", 1)
    supervisor = supervised().until_up()
    supervisor.until(lambda: len(marks()) == 2, "both have begun")
    assert supervisor.stop(number) == ExitCode.DONE
    assert all_are("finished", first, second)
    assert len(marks()) == 4
    assert not Process.objects.exists()
    assert not ClaimedExecution.objects.exists()


def test_a_stop_that_takes_longer_than_the_threshold_is_not_taken_for_death(supervised):
    """The heart beats while tasks finish; somebody else is there who would prune."""
    result = rest.enqueue("it", 4.5)
    stopping = supervised(shutdown_timeout=20).until_up()
    stopping.until(marks, "it has begun")
    watching = supervised().until_up()
    assert stopping.stop() == ExitCode.DONE
    assert all_are("finished", result)
    assert marks() == ["it begins", "it ends"]
    assert "struck off" not in watching.log
    assert watching.stop() == ExitCode.DONE


def test_several_terms_are_as_good_as_one(supervised):
    result = rest.enqueue("it", 1)
    supervisor = supervised().until_up()
    supervisor.until(marks, "it has begun")
    for _ in range(3):
        supervisor.send(SIGTERM)
    assert supervisor.wait() == ExitCode.DONE
    assert all_are("finished", result)


def test_what_outlives_the_shutdown_timeout_goes_back(supervised):
    long, short = rest.enqueue("long", 60), rest.enqueue("short", 0.3)
    supervisor = supervised(shutdown_timeout=1).until_up()
    supervisor.until(lambda: len(marks()) == 2, "both have begun")
    workers = supervisor.pids()
    assert supervisor.stop() == ExitCode.LEFT_BEHIND
    assert all_are("ready", long)
    assert all_are("finished", short)
    assert not any(map(is_alive, workers))
    assert states()
    long.refresh()
    assert long.attempts == 0


@pytest.mark.parametrize("numbers", [[SIGQUIT], [SIGINT, SIGINT]])
def test_an_immediate_stop_gives_everything_back(supervised, numbers):
    result = rest.enqueue("it", 60)
    supervisor = supervised(shutdown_timeout=60).until_up()
    supervisor.until(marks, "it has begun")
    workers = supervisor.pids()
    for number in numbers:
        supervisor.send(number)
        # Two signals of a kind that come together are one.
        if number == SIGINT:
            supervisor.until(lambda: "Stopping" in supervisor.log)
    assert supervisor.wait(10) == ExitCode.QUIT
    assert all_are("ready", result)
    assert not any(map(is_alive, workers))
    assert not Process.objects.exists()


def test_jobs_that_raise_fail_and_harm_nobody(supervised):
    failing = [fail.enqueue(f"bad {n}") for n in range(3)]
    good = [mark.enqueue(f"good {n}") for n in range(3)]
    supervisor = supervised().until_up()
    supervisor.until(lambda: all_are("failed", *failing) and all_are("finished", *good))
    assert supervisor.stop() == ExitCode.DONE


def test_a_job_that_exits_its_process_fails_and_the_process_is_replaced(supervised):
    result = exit_at_once.enqueue(9)
    supervisor = supervised().until_up()
    supervisor.until(lambda: all_are("failed", result), "it has failed")
    error = FailedExecution.objects.get(pk=result.id)
    assert error.exception_class == "robust_queue.processes.ProcessExitError"
    assert "exited with code 9" in error.message
    after = mark.enqueue("after")
    supervisor.until(lambda: all_are("finished", after), "the next has run")
    assert supervisor.stop() == ExitCode.DONE


def test_a_killed_worker_is_replaced_and_its_jobs_are_judged(supervised):
    result = rest.enqueue("it", 60)
    supervisor = supervised().until_up()
    supervisor.until(marks, "it has begun")
    (victim,) = supervisor.pids()
    os.kill(victim, SIGKILL)
    supervisor.until(lambda: all_are("failed", result), "it has failed")
    assert "killed by SIGKILL, out of memory?" in FailedExecution.objects.get().message
    supervisor.until(lambda: set(supervisor.pids()) - {victim}, "a successor is up")
    assert supervisor.stop() == ExitCode.DONE


def test_a_terminated_worker_finishes_its_jobs_and_is_replaced(supervised):
    result = rest.enqueue("it", 1)
    supervisor = supervised().until_up()
    supervisor.until(marks, "it has begun")
    (worker,) = supervisor.pids()
    os.kill(worker, SIGTERM)
    supervisor.until(lambda: set(supervisor.pids()) - {worker}, "a successor is up")
    assert all_are("finished", result)
    assert supervisor.stop() == ExitCode.DONE


def test_children_of_a_killed_supervisor_finish_their_jobs_and_leave(supervised):
    result = rest.enqueue("it", 1)
    supervisor = supervised().until_up()
    supervisor.until(marks, "it has begun")
    children = [row.pid for row in supervisor.rows()]
    supervisor.send(SIGKILL)
    supervisor.wait()
    until(lambda: not any(map(is_alive, children)), "the children have left")
    assert all_are("finished", result)
    assert [row.kind for row in Process.objects.all()] == ["Supervisor"]
