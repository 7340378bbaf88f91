"""The tasks of Robust Queue."""

import time

from benchmarks.marks import mark
from robust_queue import task


@task
def work(number: int) -> None:
    """Leave a mark."""
    mark(number)


@task
async def work_async(number: int) -> None:
    """Leave a mark, on the event loop."""
    mark(number)


@task
def nap(number: int, seconds: float) -> None:
    """Leave a mark, then sleep."""
    mark(number)
    time.sleep(seconds)
