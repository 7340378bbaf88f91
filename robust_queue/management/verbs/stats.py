"""``manage.py robust_queue stats``: how much was done, and how fast."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import OutputWrapper

from robust_queue.lifecycle.statistics import PERIODS, DetailedPoint, History, history
from robust_queue.models.rollups import EVERY_QUEUE

from .tables import moment, table

HELP = "tell how many jobs finished and failed lately, and how long they took"

TITLES = (
    "FROM",
    "FINISHED",
    "FAILED",
    "WAIT P50",
    "WAIT P95",
    "RUN P50",
    "RUN P95",
    "READY",
    "LATENCY",
)

_UNITS = ((3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "µs"))
# There is no more precision than that.
TWO_DIGITS = 10


def add_arguments(parser: ArgumentParser) -> None:
    """Of when, and of which queue."""
    parser.add_argument(
        "--period",
        choices=list(PERIODS),
        default="hour",
        help="how far to look back; an hour unless told otherwise",
    )
    parser.add_argument(
        "--queue",
        metavar="NAME",
        default=EVERY_QUEUE,
        help="of this queue only",
    )
    parser.add_argument(
        "--json", action="store_true", help="for programs; lengths are in seconds"
    )


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Tell of each stretch of time in which something happened, and of all of them."""
    found = history(database, options["period"], queue_name=options["queue"])
    if options["json"]:
        out.write(json.dumps(asdict(found), default=_plain))
        return
    for line in _lines(found):
        out.write(line)


def _lines(found: History) -> Iterable[str]:
    told = [each for each in found.points if _is_worth_telling(each)]
    if not told:
        return [f"Nothing is known of the last {found.period}."]
    rows = [(moment(each.at), *_facts(each)) for each in told]
    return table(TITLES, [*rows, ("ALL", *_facts(found.total))])


def _is_worth_telling(point: DetailedPoint) -> bool:
    return bool(point.finished or point.failed or point.depth is not None)


def _facts(point: DetailedPoint) -> tuple[object, ...]:
    return (
        point.finished,
        point.failed,
        _length(point.wait_p50),
        _length(point.wait_p95),
        _length(point.run_p50),
        _length(point.run_p95),
        "" if point.depth is None else point.depth,
        _length(point.latency),
    )


def _length(time: timedelta | None) -> str:
    if time is None:
        return ""
    seconds = time.total_seconds()
    size, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    number = seconds / size
    return f"{number:.{1 if number < TWO_DIGITS else 0}f} {unit}"


def _plain(value: datetime | timedelta) -> str | float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.isoformat()
