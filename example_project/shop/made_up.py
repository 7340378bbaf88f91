"""An hour that never was, for charts that would begin empty.

Workers tell once a minute what they have done. Whoever opens the overview before that
would see nothing.
"""

import math
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from uuid import uuid4

from robust_queue.lifecycle.durations import Durations, step_of
from robust_queue.lifecycle.rollups import Depth, write_depths, write_tallies
from robust_queue.lifecycle.tallies import Tallies, Tally
from robust_queue.models.rollups import EVERY_QUEUE

MINUTE = 60
MINUTES = 60
# By queue: jobs a minute, and milliseconds that one takes.
USUAL = {"default": (42, 60), "mail": (28, 35), "parcels": (16, 400), "reports": (4, 9)}
# Of so many jobs one fails.
LUCK = 24


def write_history(database: str, now: float | None = None) -> None:
    """Write down what workers and a dispatcher would have told of the last hour."""
    end = (time.time() if now is None else now) // MINUTE * MINUTE
    tallies = Tallies()
    for minute in range(MINUTES):
        tallies.add(end - (minute + 1) * MINUTE, dict(_told(minute)))
    told = tallies.unwritten
    write_tallies(database, uuid4(), told)
    depths = {
        entry: Depth(ready=tally.failed + 2, latency=100 * (tally.failed + 1))
        for entry, tally in told.items()
    }
    write_depths(database, uuid4(), depths)


def _told(minute: int) -> Iterator[tuple[str, Tally]]:
    by_queue = {queue: _tally(queue, minute) for queue in USUAL}
    yield from by_queue.items()
    yield EVERY_QUEUE, _sum(by_queue)


def _tally(queue: str, minute: int) -> Tally:
    usual, milliseconds = USUAL[queue]
    number = round(usual * _bustle(minute))
    failed = number // LUCK
    return Tally(
        finished=number - failed,
        failed=failed,
        waits=_around(8 * _bustle(minute), number),
        runs=_around(milliseconds, number),
    )


def _bustle(minute: int) -> float:
    """People come and go: from half of what is usual to half as much again."""
    return 1 + 0.35 * math.sin(minute / 7) + 0.15 * math.sin(minute * 2.3)


def _around(milliseconds: float, number: int) -> Durations:
    """Most take about that long, one in ten takes three times as long."""
    slow = number // 10
    usual = timedelta(milliseconds=milliseconds)
    return Durations({step_of(usual): number - slow, step_of(3 * usual): slow})


def _sum(tallies: Mapping[str, Tally]) -> Tally:
    total = Tally()
    for each in tallies.values():
        total.add(each)
    return total
