"""Page by page: on few jobs, on many, and beside dj-queue's."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.systems.base import DASHBOARD

if TYPE_CHECKING:
    from benchmarks.summary import Row, Summary

OURS, THEIRS = "robust-queue", "dj-queue"
GROWTH = 3
STATEMENTS = 12

TITLE = "Dashboard, page by page (ms of CPU)"
HEADINGS = (
    *("page", "statements", "ms, few jobs", "ms, many", "growth"),
    *("dj-queue's page", "its ms, many", "ours/theirs", "verdict"),
)

# Which of its pages tells the same. A list with a question that it has no answer for
# stands beside its list without any.
COUNTERPARTS = {
    "index": "index",
    "overview": "dashboard",
    "dashboard": "dashboard",
    "queue": "dashboard",
    "queue_detail": "dashboard_queue",
    "queue/1": "dashboard_queue",
    "job": "job",
    "job/1": "job/1",
    "job?queue=queue-007": "job?queue_name=queue-007",
    "job?state=failed&queue=queue-007": "job?queue_name=queue-007&status=failed",
    "job?q": "job?q",
    "job?older": "job?p",
    "job?state=failed&older": "job?p",
    "job?state=finished&older": "job?p",
    "job?recurring=recurring-007": "job?recurring_task_key=recurring-007",
    "failures": "failedexecution",
    "failedexecution": "failedexecution",
    "failedexecution/1": "failedexecution/1",
    "process": "process",
    "process/1": "process/1",
    "processtree": "process",
    "recurringtask": "recurringtask",
    "recurringtask/1": "recurringtask/1",
    "semaphore": "semaphore",
    "semaphore/1": "semaphore/1",
    "pause": "pause",
    "pause/1": "pause/1",
}


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of ours, and what was measured of it."""

    name: str
    statements: float | None = None
    few: float | None = None
    many: float | None = None
    counterpart: str = ""
    theirs: float | None = None
    status: float | None = None

    @property
    def growth(self) -> float | None:
        """How many times as long it takes with many jobs."""
        return self.many / self.few if self.many and self.few else None

    @property
    def ratio(self) -> float | None:
        """How many times as long as theirs it takes."""
        return self.many / self.theirs if self.many and self.theirs else None

    @property
    def listing(self) -> float | None:
        """The statements of a list; a page about one row, or about all, has more."""
        is_list = "/" not in self.name and not self.name.startswith("overview")
        return self.statements if is_list else None

    @property
    def verdict(self) -> str:
        """What it misses."""
        if self.status:
            return f"failed: {self.status:.0f}"
        missed = [
            word
            for word, measured, bar in (
                ("growth", self.growth, GROWTH),
                ("dj-queue", self.ratio, 1),
                ("statements", self.listing, STATEMENTS),
            )
            if measured is not None and measured > bar
        ]
        return f"missed: {', '.join(missed)}" if missed else "ok"


def flat(pages: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return what was measured of each page, as figures of one measurement."""
    return {
        f"{what}: {name}": value
        for name, facts in pages.items()
        for what, value in facts.items()
    }


def pages(run: "Summary") -> list[Page]:
    """Return all pages of ours that were measured."""
    few, many = _sizes(run, OURS)
    theirs = _sizes(run, THEIRS)[1]
    return [*_compared(few, many, theirs)] if few and many else []


def _sizes(run: "Summary", system: str) -> tuple["Row | None", "Row | None"]:
    """Return what was measured with the fewest jobs, and with the most."""
    rows = [
        row
        for row in run.of(DASHBOARD)
        if row.system == system and row.values is not None
    ]
    rows.sort(key=lambda row: int(row.variant.replace(",", "")))
    return (rows[0], rows[-1]) if rows else (None, None)


def _compared(few: "Row", many: "Row", theirs: "Row | None") -> Iterator[Page]:
    peer = theirs.figures if theirs else {}
    names = [key.partition(": ")[2] for key in many.figures if ": " in key]
    for name in dict.fromkeys(names):
        counterpart = _counterpart(name, peer)
        yield Page(
            name=name,
            statements=many.figures.get(f"statements: {name}"),
            few=few.figures.get(f"ms: {name}"),
            many=many.figures.get(f"ms: {name}"),
            counterpart=counterpart,
            theirs=peer.get(f"ms: {counterpart}"),
            status=many.figures.get(f"status: {name}"),
        )


def _counterpart(name: str, peer: Mapping[str, float]) -> str:
    theirs = name.replace("state=", "status=")
    plain = name.partition("?")[0]
    for candidate in (COUNTERPARTS.get(name, ""), theirs, COUNTERPARTS.get(plain, "")):
        if f"ms: {candidate}" in peer:
            return candidate
    return ""
