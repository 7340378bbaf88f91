"""What rollups tell: how much was done, how fast, and what waited meanwhile.

Only looks, with one statement each. Times without rows are there as well.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

from django.db.models import Max, QuerySet, Sum
from django.utils import timezone

from robust_queue.models import Rollup
from robust_queue.models.rollups import EVERY_QUEUE

from .durations import Durations
from .tallies import Tally

# Seconds after the end of a stretch of time until everybody has told of it.
LATENESS = 15

# Finished, failed, depth and latency where there is no row.
NOTHING = (0, 0, None, None)

PeriodName: TypeAlias = Literal["hour", "day", "week"]


class Period(NamedTuple):
    """So many stretches of so many seconds; the last one is not over yet."""

    span: int
    points: int

    def moments(self, now: float) -> range:
        """When each of them begins, in seconds since the epoch."""
        end = (int(now // self.span) + 1) * self.span
        return range(end - self.points * self.span, end, self.span)


PERIODS: dict[PeriodName, Period] = {
    "hour": Period(60, 60),
    "day": Period(900, 96),
    "week": Period(3600, 168),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A stretch of time, or several. What nobody has told is None."""

    at: datetime
    # False while there may be more to come.
    is_complete: bool
    finished: int = 0
    failed: int = 0
    # At most; of jobs that were ready.
    depth: int | None = None
    latency: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailedPoint(Point):
    """Likewise, and how long most jobs waited and ran."""

    wait_p50: timedelta | None = None
    wait_p95: timedelta | None = None
    run_p50: timedelta | None = None
    run_p95: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The points of a period, and the whole of it."""

    period: PeriodName
    span: timedelta
    points: Sequence[DetailedPoint]
    total: DetailedPoint


def history(
    database: str,
    period: PeriodName = "hour",
    *,
    queue_name: str = EVERY_QUEUE,
    now: float | None = None,
) -> History:
    """What happened in one queue, or in all of them; now is in seconds."""
    span, now = PERIODS[period].span, time.time() if now is None else now
    moments = PERIODS[period].moments(now)
    sums, total = defaultdict[int, _Sum](_Sum), _Sum()
    rows = _rows(database, [queue_name], span, moments)
    for row in map(_Row._make, rows.values_list(*_Row._fields)):
        sums[_seconds(row.at)].include(row.sum)
    for each in sums.values():
        total.include(each)
    return History(
        period=period,
        span=timedelta(seconds=span),
        points=[sums[at].point(at, at + span, now) for at in moments],
        total=total.point(moments[0], moments[-1] + span, now),
    )


def sparklines(
    database: str, queue_names: Iterable[str], *, now: float | None = None
) -> dict[str, list[Point]]:
    """What happened in each of these queues, minute by minute for an hour."""
    (span, _), now = PERIODS["hour"], time.time() if now is None else now
    moments = PERIODS["hour"].moments(now)
    names = list(queue_names)
    by_minute = _rows(database, names, span, moments).values_list("queue_name", "at")
    sums = by_minute.annotate(
        Sum("finished"), Sum("failed"), Max("depth"), Max("latency")
    )
    found = {(name, _seconds(at)): facts for name, at, *facts in sums}
    return {
        name: [_plain(at, now, found.get((name, at), NOTHING)) for at in moments]
        for name in names
    }


def _rows(
    database: str, names: Sequence[str], span: int, moments: range
) -> QuerySet[Rollup]:
    begin = datetime.fromtimestamp(moments[0], UTC)
    end = datetime.fromtimestamp(moments[-1], UTC)
    rows = Rollup.objects.using(database).order_by()
    return rows.filter(queue_name__in=names, span=span, at__range=(begin, end))


@dataclass(slots=True)
class _Sum:
    """What several processes tell of the same time."""

    tally: Tally = field(default_factory=Tally)
    depth: int | None = None
    latency: int | None = None

    def include(self, other: "_Sum") -> None:
        self.tally.add(other.tally)
        self.depth = _most(self.depth, other.depth)
        self.latency = _most(self.latency, other.latency)

    def point(self, at: int, end: int, now: float) -> DetailedPoint:
        waits, runs = self.tally.waits, self.tally.runs
        return DetailedPoint(
            at=datetime.fromtimestamp(at, UTC),
            is_complete=_is_complete(end, now),
            finished=self.tally.finished,
            failed=self.tally.failed,
            depth=self.depth,
            latency=_milliseconds(self.latency),
            wait_p50=waits.percentile(0.5),
            wait_p95=waits.percentile(0.95),
            run_p50=runs.percentile(0.5),
            run_p95=runs.percentile(0.95),
        )


class _Row(NamedTuple):
    """What one process tells."""

    at: datetime
    finished: int
    failed: int
    waits: str
    runs: str
    depth: int | None
    latency: int | None

    @property
    def sum(self) -> _Sum:
        waits, runs = Durations.of(self.waits), Durations.of(self.runs)
        tally = Tally(self.finished, self.failed, waits, runs)
        return _Sum(tally, self.depth, self.latency)


def _plain(at: int, now: float, facts: Sequence[Any]) -> Point:
    finished, failed, depth, latency = facts
    return Point(
        at=datetime.fromtimestamp(at, UTC),
        is_complete=_is_complete(at + PERIODS["hour"].span, now),
        finished=finished,
        failed=failed,
        depth=depth,
        latency=_milliseconds(latency),
    )


def _is_complete(end: int, now: float) -> bool:
    return end + LATENESS <= now


def _most(one: int | None, other: int | None) -> int | None:
    told = [each for each in (one, other) if each is not None]
    return max(told, default=None)


def _milliseconds(number: int | None) -> timedelta | None:
    return None if number is None else timedelta(milliseconds=number)


def _seconds(at: datetime) -> int:
    aware = at if timezone.is_aware(at) else timezone.make_aware(at)
    return int(aware.timestamp())
