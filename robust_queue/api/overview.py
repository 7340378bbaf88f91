"""How the queue is doing: statistics, and whether anything is wrong."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from robust_queue import __version__
from robust_queue.doctor import examine
from robust_queue.lifecycle.statistics import DetailedPoint, PeriodName, history
from robust_queue.models.rollups import EVERY_QUEUE

from .access import Needs, caller_in, database_of
from .deeds import LOOK, LOOK_AT_PROCESSES, LOOK_AT_RECURRING
from .queues import check_known
from .wire import Stamp

router = Router(tags=["Overview"])


class PointFacts(Schema):
    """A stretch of time. What nobody has told is `null`."""

    at: Stamp
    is_complete: bool = Field(description="`false` while there may be more to come.")
    finished: int
    failed: int = Field(description="Attempts.")
    depth: int | None = Field(description="Ready jobs, at most.")
    latency: float | None = Field(description="Seconds, at most.")
    wait_p50: float | None
    wait_p95: float | None
    run_p50: float | None
    run_p95: float | None


class Statistics(Schema):
    """What happened, stretch by stretch, and as a whole."""

    period: str
    queue: str | None
    span: float = Field(description="Seconds that a point stands for.")
    points: list[PointFacts]
    total: PointFacts


class FindingFacts(Schema):
    """Something that is wrong, or that somebody should know of."""

    severity: Literal["problem", "warning"]
    text: str
    rows: list[str] = Field(
        description="Who or what is concerned; the first hundred. None to sessions "
        "without view_process and view_recurringtask."
    )


class Health(Schema):
    """Whether anything is wrong, as `doctor` would say."""

    is_healthy: bool
    version: str
    findings: list[FindingFacts]


@router.get("/statistics", auth=Needs(LOOK), response=Statistics)
def statistics(
    request: HttpRequest,
    period: PeriodName = "hour",
    queue: Annotated[
        str | None, Query(max_length=128, min_length=1, pattern=r"^[^\x00]+$")
    ] = None,
) -> dict[str, Any]:
    """What happened in the last hour, day or week, in one queue or in all of them."""
    database = database_of(request)
    if queue is not None:
        check_known(database, queue)
    found = history(database, period, queue_name=queue or EVERY_QUEUE)
    return {
        "period": period,
        "queue": queue,
        "span": found.span.total_seconds(),
        "points": [_point(each) for each in found.points],
        "total": _point(found.total),
    }


@router.get("/health", auth=Needs(LOOK), response={200: Health, 503: Health})
def health(request: HttpRequest) -> Status[dict[str, Any]]:
    """Whether anything is wrong. With the status 503 something is."""
    findings = examine(database_of(request), deep=False)
    is_healthy = not any(each.severity == "problem" for each in findings)
    # They name jobs, processes and recurring tasks.
    names_rows = all(map(caller_in(request).may, _NAMED_IN_ROWS))
    told = [
        {
            "severity": each.severity,
            "text": each.text,
            "rows": list(each.rows) if names_rows else [],
        }
        for each in findings
    ]
    facts = {"is_healthy": is_healthy, "version": __version__, "findings": told}
    return Status(200 if is_healthy else 503, facts)


_NAMED_IN_ROWS = (LOOK, LOOK_AT_PROCESSES, LOOK_AT_RECURRING)


def _point(point: DetailedPoint) -> Mapping[str, Any]:
    return {
        "at": point.at,
        "is_complete": point.is_complete,
        "finished": point.finished,
        "failed": point.failed,
        "depth": point.depth,
        "latency": _seconds(point.latency),
        "wait_p50": _seconds(point.wait_p50),
        "wait_p95": _seconds(point.wait_p95),
        "run_p50": _seconds(point.run_p50),
        "run_p95": _seconds(point.run_p95),
    }


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()
