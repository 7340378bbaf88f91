"""Many tasks under workers that are replaced again and again; then all is judged."""

from collections import Counter

from robust_queue import enqueue_all
from robust_queue.models import FailedExecution, FinishedExecution, Process
from robust_queue.processes.exits import ExitCode
from tests.support.supervisors import PATIENCE
from tests.testapp.witnessed_tasks import once

TASKS_PER_WORKER = 50
AT_ONCE = 1000


def run_with_replacements(start, witness, *, jobs, timeout=PATIENCE):
    """Run so many tasks, each exactly once; return how many workers that took."""
    labels = [f"it-{n}" for n in range(jobs)]
    for first in range(0, jobs, AT_ONCE):
        enqueue_all(once.bind(label) for label in labels[first : first + AT_ONCE])
    supervisor = start(
        workers=[
            {"threads": 3, "polling_interval": 0.05, "max_tasks": TASKS_PER_WORKER}
        ]
    )
    supervisor.until(lambda: _finished() == jobs, "all have run", timeout=timeout)
    assert supervisor.stop() == ExitCode.DONE
    assert Counter(witness.count("begins").values()) == {1: jobs}
    assert Counter(witness.count("ends").values()) == {1: jobs}
    assert "is killed" not in supervisor.log
    assert not Process.objects.exists()
    return len({pid for event, _, pid, _ in witness.events() if event == "begins"})


def _finished():
    assert not FailedExecution.objects.exists()
    return FinishedExecution.objects.count()
