"""How close to the ideal 2,000 coroutines come in one worker: the strict figure."""

import time

from robust_queue import enqueue_all
from robust_queue.models import FinishedExecution
from robust_queue.processes.exits import ExitCode
from tests.testapp.coroutine_tasks import MODULES, nap

JOBS, COROUTINES, SECONDS = 2_000, 200, 0.1
ALLOWED = 1.5


def test_two_thousand_coroutines(supervised):
    """From before they are enqueued until all are recorded."""
    workers = [{"coroutines": COROUTINES}]
    supervisor = supervised(workers=workers, task_modules=MODULES).until_up()
    begun = time.monotonic()
    enqueue_all(nap.bind(SECONDS) for _ in range(JOBS))
    enqueued = time.monotonic()
    supervisor.until(lambda: FinishedExecution.objects.count() == JOBS, timeout=100)
    took = time.monotonic() - begun
    print(  # noqa: T201
        f"{JOBS:,} coroutines of {SECONDS} s, {COROUTINES} at a time: {took:.2f} s, "
        f"of which {enqueued - begun:.2f} s to enqueue them"
    )
    assert supervisor.stop() == ExitCode.DONE
    assert took < JOBS / COROUTINES * SECONDS + ALLOWED
