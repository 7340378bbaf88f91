"""Deploys under load: supervisors are replaced while work comes in and runs.

What is shorter than ``shutdown_timeout`` is done exactly once. What is longer begins
again, and never while the first run of it goes on.
"""

import threading
from signal import SIGTERM

import pytest
from django.db import connection

from robust_queue.models import FinishedExecution, Process
from robust_queue.processes.exits import ExitCode
from tests.support.invariants import states
from tests.support.supervisors import until
from tests.testapp.witnessed_tasks import alone, once

JOBS = 600
DEPLOYS = 3


class Stream(threading.Thread):
    """Enqueues jobs one by one, as a site does."""

    def __init__(self, jobs):
        super().__init__(daemon=True)
        self.labels = [f"it-{n}" for n in range(jobs)]
        self.is_to_hurry = threading.Event()

    def run(self):
        try:
            for label in self.labels:
                once.enqueue(label, 0.03)
                self.is_to_hurry.wait(0.01)
        finally:
            connection.close()


def test_short_jobs_run_exactly_once_across_deploys(witnessed, witness):
    stream = Stream(JOBS)
    workers = [{"threads": 3, "processes": 2, "polling_interval": 0.05}]
    current = witnessed(workers=workers, shutdown_timeout=20).until_up(workers=2)
    stream.start()
    for deploy in range(DEPLOYS):
        until(lambda n=deploy: witness.count("ends").total() > 20 * n, "under load")
        successor = witnessed(workers=workers, shutdown_timeout=20)
        # Both work for a moment, as in a rolling deploy.
        successor.until_up(workers=2)
        assert current.stop(SIGTERM) == ExitCode.DONE
        assert " went back" not in current.log
        current = successor
    stream.is_to_hurry.set()
    stream.join()
    current.until(lambda: FinishedExecution.objects.count() == JOBS, "all are finished")
    assert current.stop() == ExitCode.DONE

    each_once = dict.fromkeys(stream.labels, 1)
    assert witness.count("begins") == each_once
    assert witness.count("ends") == each_once
    assert witness.count("announced") == each_once
    assert set(states().values()) == {"finished"}
    assert not Process.objects.exists()


@pytest.mark.parametrize("is_deaf", [False, True], ids=["sleeping", "deaf"])
def test_long_jobs_begin_again_only_when_their_first_run_is_over(
    witnessed, witness, is_deaf
):
    """Also those of a process that hears no signal, since its interpreter is held."""
    labels = [f"it-{n}" for n in range(1 if is_deaf else 3)]
    for label in labels:
        alone.enqueue(label, 60, is_deaf=is_deaf)
    # A heart that cannot beat is another story.
    options = {"process_alive_threshold": 120, "shutdown_timeout": 0.5}
    deploys = 1 if is_deaf else 3
    current = witnessed(**options).until_up()
    for deploy in range(1, deploys + 1):
        runs = dict.fromkeys(labels, deploy)
        current.until(lambda n=runs: witness.count("begins") == n, "all have begun")
        successor = witnessed(**options).until_up()
        if deploy == deploys:
            witness.let_hurry()
        assert current.stop() == ExitCode.LEFT_BEHIND
        current = successor
    current.until(lambda: FinishedExecution.objects.count() == len(labels))
    assert current.stop() == ExitCode.DONE
    assert not witness.count("overlaps")
    assert witness.count("begins") == dict.fromkeys(labels, deploys + 1)
    assert witness.count("ends") == dict.fromkeys(labels, 1)
