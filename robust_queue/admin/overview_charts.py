"""The charts of the overview: how much was done, how fast, and what waited."""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.statistics import DetailedPoint, History, PeriodName

from . import charts
from .jobs_list import took

# Within an hour or a day it is clear which day is meant.
MOMENTS: dict[PeriodName, str] = {"hour": "H:i", "day": "H:i", "week": "D H:i"}

TITLES: dict[PeriodName, Any] = {
    "hour": _("Jobs per minute"),
    "day": _("Jobs per quarter of an hour"),
    "week": _("Jobs per hour"),
}

HALF = _("median")
MOST = _("95th percentile")


class Series(NamedTuple):
    """Values over time, and what they come to as a whole."""

    label: Any
    values: Sequence[float | None]
    whole: str


class Figure(NamedTuple):
    """A chart, what it is about, its highest value, and what each series means."""

    title: Any
    chart: Any
    top: str
    series: Sequence[Series]


def figures(told: History) -> list[Figure]:
    """All of them, of the same stretch of time."""
    moments = [moment_of(each, told.period) for each in told.points]
    return [
        _throughput(told, moments),
        _lengths(_("Time until they begin"), told, moments, "wait"),
        _lengths(_("Time they run"), told, moments, "run"),
        _depth(told, moments),
    ]


def moment_of(point: DetailedPoint, period: PeriodName) -> str:
    """When it begins, by the clocks of whoever looks."""
    return date_format(timezone.localtime(point.at), MOMENTS[period])


def _throughput(told: History, moments: Sequence[str]) -> Figure:
    points, total = told.points, told.total
    finished, failed = _column(points, "finished"), _column(points, "failed")
    series = [
        Series(_("finished"), finished, _number(total.finished)),
        Series(_("failed attempts"), failed, _number(total.failed)),
    ]
    top = max(map(sum, zip(finished, failed, strict=True)))
    chart = charts.bars([finished, failed], _alt(series), _hints(series, moments))
    return Figure(TITLES[told.period], chart, _number(top), series)


def _lengths(title: Any, told: History, moments: Sequence[str], what: str) -> Figure:
    series = [
        Series(
            label,
            [_seconds(each) for each in _column(told.points, f"{what}_{which}")],
            _length(getattr(told.total, f"{what}_{which}")),
        )
        for which, label in (("p50", HALF), ("p95", MOST))
    ]
    return _of_lines(title, series, moments, _shown_seconds)


def _depth(told: History, moments: Sequence[str]) -> Figure:
    depths = _column(told.points, "depth")
    most = told.total.depth
    whole = "-" if most is None else _number(most)
    series = [Series(_("ready jobs at most"), depths, whole)]
    return _of_lines(_("Jobs that wait to be run"), series, moments, _number)


def _of_lines(
    title: Any,
    series: Sequence[Series],
    moments: Sequence[str],
    shown: Callable[[float], str],
) -> Figure:
    lines = [each.values for each in series]
    known = [value for values in lines for value in values if value is not None]
    chart = charts.lines(lines, _alt(series), _hints(series, moments, shown))
    return Figure(title, chart, shown(max(known)) if known else "", series)


def _column(points: Iterable[DetailedPoint], name: str) -> list[Any]:
    return [getattr(each, name) for each in points]


def _alt(series: Sequence[Series]) -> list[str]:
    """What is read aloud in place of the picture."""
    return [f"{each.label}: {each.whole}" for each in series]


def _hints(
    series: Sequence[Series],
    moments: Sequence[str],
    shown: Callable[[float], str] | None = None,
) -> list[str]:
    """What is said of each point on demand."""
    shown = shown or _number
    return [
        ", ".join(
            [moment]
            + [
                f"{each.label}: {shown(value)}"
                for each in series
                if (value := each.values[at]) is not None
            ]
        )
        for at, moment in enumerate(moments)
    ]


def _number(number: float) -> str:
    return number_format(int(number), force_grouping=True)


def _length(length: timedelta | None) -> str:
    return "-" if length is None else took(length)


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()


def _shown_seconds(seconds: float) -> str:
    return took(timedelta(seconds=seconds))
