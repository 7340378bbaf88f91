"""Whoever listens to the end of jobs may hang; neither supervisor nor worker does."""

import json
import os
import time
from signal import SIGKILL

import pytest
from django.db import OperationalError

from robust_queue.models import Process
from robust_queue.processes.exits import ExitCode
from robust_queue.processes.forked import ForkedErrand
from tests.support.invariants import state_of
from tests.support.supervisors import until
from tests.testapp.process_tasks import exit_every_time, mark

MODULES = ["tests.testapp.process_tasks", "tests.testapp.obstacles"]


@pytest.fixture
def slow_listener(supervised, tmp_path):
    """Starts a supervisor where listeners of jobs named "slow" never come back."""
    obstacle = tmp_path / "obstacle"
    obstacle.touch()

    def start(**options):
        return supervised(
            task_modules=MODULES,
            environment={
                "RQ_OBSTACLES": json.dumps({"listen_slowly": str(obstacle)}),
            },
            **options,
        ).until_up()

    return start


def test_a_listener_that_hangs_does_not_stop_the_supervisor(slow_listener):
    crashing = exit_every_time.enqueue("slow")
    supervisor = slow_listener(workers=[{"threads": 1, "polling_interval": 0.05}])
    supervisor.until(lambda: state_of(crashing) == "failed", "it has failed for good")
    (worker,) = supervisor.until(supervisor.pids, "a successor is up")
    os.kill(worker, SIGKILL)
    after = mark.enqueue("after")
    supervisor.until(lambda: state_of(after) == "finished", "work goes on")
    assert supervisor.stop(timeout=20) == ExitCode.DONE
    assert not Process.objects.exists()


def test_a_listener_that_hangs_keeps_no_job_that_others_could_run(slow_listener):
    """The thread that it holds is not counted as free, so nothing is taken for it."""
    slow = mark.enqueue("slow")
    supervisor = slow_listener(workers=[{"threads": 1, "polling_interval": 0.05}])
    supervisor.until(lambda: state_of(slow) == "finished", "it has run")
    waiting = mark.enqueue("waits")
    time.sleep(0.5)  # ten polls, in which nothing may happen: no fact to wait for
    assert state_of(waiting) == "ready"


def test_an_errand_is_sent_again_until_it_is_done(tmp_path):
    path = tmp_path / "tries"

    def work():
        with path.open("a") as file:
            file.write("x")
        if len(path.read_text()) < 3:
            raise OperationalError

    errand = ForkedErrand(work, database="default", on_birth=lambda: None)
    until(errand.further, "it is done")
    assert path.read_text() == "xxx"


def test_an_errand_that_is_given_up_ends(tmp_path):
    path = tmp_path / "begun"

    def work():
        path.write_text(str(os.getpid()))
        time.sleep(60)  # until it is ended

    errand = ForkedErrand(work, database="default", on_birth=lambda: None)
    errand.further()
    pid = int(until(lambda: path.exists() and path.read_text(), "it has begun"))
    assert not errand.further()
    errand.give_up()
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
