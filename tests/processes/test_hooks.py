"""Hooks in real processes: when they are called, and what harm they can do."""

import os
from signal import SIGKILL

import pytest

from robust_queue.processes.exits import ExitCode
from tests.support.invariants import state_of
from tests.testapp.process_tasks import mark

# As tests/testapp/hooked.py has it, which must not be imported here.
FAIL = "RQ_HOOKS_FAIL"
MODULES = [
    "tests.testapp.process_tasks",
    "tests.testapp.witnessed_tasks",
    "tests.testapp.hooked",
]


@pytest.fixture
def hooked_up(supervised, witness):
    def start(*arguments, environment=(), **options):
        return supervised(
            *arguments,
            task_modules=MODULES,
            environment={**witness.environment, **dict(environment)},
            **options,
        ).until_up()

    return start


def told(witness):
    return [event for event, *_ in witness.events()]


@pytest.mark.parametrize("mode", ["fork", "async"])
def test_each_hook_has_its_moment(hooked_up, witness, mode):
    supervisor = hooked_up("--mode", mode)
    result = mark.enqueue("it")
    supervisor.until(lambda: state_of(result) == "finished", "it has run")
    supervisor.until(lambda: "dispatcher_starts" in told(witness), "all are up")
    assert supervisor.stop() == ExitCode.DONE
    found = told(witness)
    assert found[0] == "supervisor_starts"
    assert found[-1] == "supervisor_exits"
    assert found.count("supervisor_stops") == 1
    mine = [each for each in found if each.startswith("worker")]
    assert mine == ["worker_starts", "worker_stops", "worker_exits"]
    assert witness.count("worker_starts") == {"*": 1}
    pids = {event: int(pid) for event, _, pid, _ in witness.events()}
    assert pids["supervisor_starts"] == pids["supervisor_exits"] == supervisor.pid
    assert (pids["worker_starts"] == supervisor.pid) == (mode == "async")


def test_a_replacement_is_told_in_the_supervisor(hooked_up, witness):
    supervisor = hooked_up()
    supervisor.until(lambda: "worker_starts" in told(witness), "it has come so far")
    (worker,) = supervisor.pids()
    os.kill(worker, SIGKILL)
    supervisor.until(lambda: witness.has("replaced", "Worker"), "it is told")
    supervisor.until(lambda: told(witness).count("worker_starts") == 2, "it is up")
    assert "worker_exits" not in told(witness), "one that is killed has no last words"
    assert supervisor.stop() == ExitCode.DONE


@pytest.mark.parametrize("mode", ["fork", "async"])
def test_hooks_that_fail_are_reported_and_harm_nothing(hooked_up, witness, mode):
    supervisor = hooked_up(
        "--mode",
        mode,
        environment={FAIL: "1"},
        on_thread_error="tests.testapp.hooked.hear_of",
    )
    result = mark.enqueue("it")
    supervisor.until(lambda: state_of(result) == "finished", "it has run")
    supervisor.until(lambda: "dispatcher_starts" in told(witness), "all are up")
    assert supervisor.stop() == ExitCode.DONE
    assert witness.count("heard_of") == {"ValueError": 5, "SystemExit": 3}
    assert told(witness)[-1] == "heard_of", "the last hook of all is one that fails"


def test_without_a_handler_failing_hooks_are_logged(hooked_up):
    supervisor = hooked_up(environment={FAIL: "1"})
    complaint = "ValueError: a hook of no use"
    supervisor.until(lambda: supervisor.log.count(complaint) == 2, "two so far")
    assert supervisor.stop() == ExitCode.DONE
    assert supervisor.log.count(complaint) == 5
    assert "Something went wrong while tests.testapp.hooked.fails" in supervisor.log
