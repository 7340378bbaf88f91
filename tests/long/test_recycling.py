"""10,000 tasks under workers that are replaced every 50 tasks: each runs exactly once.

RQ_RECYCLED_JOBS=10000   how many tasks
"""

import os
import time

from tests.support.recycling import TASKS_PER_WORKER, run_with_replacements

JOBS = int(os.environ.get("RQ_RECYCLED_JOBS") or 10_000)


def test_every_task_runs_exactly_once_over_many_successors(witnessed, witness):
    begun = time.monotonic()
    workers = run_with_replacements(witnessed, witness, jobs=JOBS, timeout=1800)
    seconds = time.monotonic() - begun
    print(f"\nrecycling: {JOBS} tasks by {workers} workers in {seconds:.0f} s")  # noqa: T201
    assert workers > JOBS / TASKS_PER_WORKER / 2
