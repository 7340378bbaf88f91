"""The tasks of Robust Queue."""

import time
from datetime import timedelta

from benchmarks.marks import mark
from benchmarks.plan import KEYS
from robust_queue import Concurrency, task

# A queue is filled once for all repeats, and must not be too old for the last of them.
LONGER_THAN_A_RUN = timedelta(hours=3)


@task
def work(number: int) -> None:
    """Leave a mark."""
    mark(number)


@task
async def work_async(number: int) -> None:
    """Leave a mark, on the event loop."""
    mark(number)


@task(concurrency=Concurrency(key="hot", duration=LONGER_THAN_A_RUN))
def work_hot(number: int) -> None:
    """Leave a mark, one at a time."""
    mark(number)


def _key(number: int) -> int:
    return number % KEYS


@task(concurrency=Concurrency(key=_key, duration=LONGER_THAN_A_RUN))
def work_keyed(number: int) -> None:
    """Leave a mark, one at a time of those with the same key."""
    mark(number)


@task
def nap(number: int, seconds: float) -> None:
    """Leave a mark, then sleep."""
    mark(number)
    time.sleep(seconds)
