"""Who serves which queue: what waits, where nobody comes, and who waits for nothing.

Only looks. Made for a page that is asked for again and again: a few statements, each
bounded by the number of queues, and counts that end where nobody reads them any more.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from django.db.models import Count, Q
from django.utils import timezone

from robust_queue.models import ClaimedExecution, Rollup
from robust_queue.models.rollups import EVERY_QUEUE
from robust_queue.stores import store_for
from robust_queue.stores.measuring import Measured

from .queues import (
    QueueStatus,
    accepted_names,
    configured_names,
    pauses_in_force,
    what_waits,
)
from .workers import WorkerStatus, servers

PAGE = 50
# Ready jobs that are counted: of one queue, and of all those of a page. From about
# twice as many on, PostgreSQL takes a tenth of a second to compile the statement.
MOST_OF_ONE = 10_000
MOST_OF_ALL = 25_000
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ServedQueue:
    """A queue, and the live workers that serve it."""

    status: QueueStatus
    served_by: Sequence[WorkerStatus] = ()

    @property
    def is_left_by_the_quiet(self) -> bool:
        """Are there workers, and takes none of them anything?"""
        return bool(self.served_by) and all(each.is_quiet for each in self.served_by)


@dataclass(frozen=True, slots=True)
class IdleServer:
    """A live worker, and what it serves although nothing is ever there."""

    worker: WorkerStatus
    queues: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    """Some of the queues, by name, and what is wrong with any of them."""

    rows: Sequence[ServedQueue]
    number: int
    pages: int
    total: int
    # No queue was counted beyond: who has one more job than this may have any number.
    counted_to: int
    # Something is ready there, and nobody takes it. Of all queues, on whatever page.
    unserved: Sequence[str]
    only_quiet: Sequence[str]
    idle: Sequence[IdleServer]


def queue_page(
    database: str, *, page: int = 1, size: int = PAGE, contains: str = ""
) -> QueuePage:
    """The queues whose names contain that; a page that is not there is the nearest.

    Every queue with ready or running jobs, of the last hours, paused, or named in the
    settings. Seven statements, however many queues and jobs there are.
    """
    found = _Survey.of(database)
    names = [each for each in found.names if contains.casefold() in each.casefold()]
    pages = max(-(-len(names) // size), 1)
    number = min(max(page, 1), pages)
    shown = names[(number - 1) * size : number * size]
    filled = [each for each in shown if found.may_have_ready(each)]
    counted_to = min(MOST_OF_ONE, MOST_OF_ALL // max(len(filled), 1))
    # One more of each tells that there are more.
    measured = store_for(database).glance(filled, limit=counted_to + 1)
    waiting = [
        ServedQueue(QueueStatus(name=it), found.serving(it)) for it in found.ready
    ]
    return QueuePage(
        rows=[found.row(each, measured.get(each)) for each in shown],
        number=number,
        pages=pages,
        total=len(names),
        counted_to=counted_to,
        unserved=[each.status.name for each in waiting if not each.served_by],
        only_quiet=[it.status.name for it in waiting if it.is_left_by_the_quiet],
        idle=_idle(database, found.alive, found.known),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Survey:
    """What there is, before anything is counted."""

    now: datetime
    alive: Sequence[WorkerStatus]
    # Those that are paused are not among them.
    ready: Collection[str]
    running: Mapping[str, int]
    paused: Mapping[str, Mapping[str, Any]]
    known: Set[str]
    names: Sequence[str]

    @classmethod
    def of(cls, database: str) -> Self:
        now = timezone.now()
        ready = store_for(database).queue_names(now=now)
        running, paused = _running(database), pauses_in_force(database, now)
        known = {*ready, *running, *paused, *_of_late(database)}
        return cls(
            now=now,
            alive=servers(database),
            ready=dict.fromkeys(ready),
            running=running,
            paused=paused,
            known=known,
            names=sorted(known | configured_names(database)),
        )

    def may_have_ready(self, queue: str) -> bool:
        return queue in self.ready or queue in self.paused

    def serving(self, queue: str) -> list[WorkerStatus]:
        """Those outside first: where there are many, the rest is only counted."""
        found = [each for each in self.alive if each.serves(queue)]
        return sorted(found, key=lambda each: not each.is_external)

    def row(self, name: str, measured: Measured | None) -> ServedQueue:
        facts = {**self.paused.get(name, {}), "running": self.running.get(name, 0)}
        if measured is not None:
            facts |= what_waits(*measured, now=self.now)
        return ServedQueue(QueueStatus(name=name, **facts), self.serving(name))


def _running(database: str) -> dict[str, int]:
    claims = ClaimedExecution.objects.using(database).order_by().values("queue_name")
    return dict(claims.annotate(n=Count("pk")).values_list("queue_name", "n"))


def _of_late(database: str) -> Iterable[str]:
    """Queues of which something was told in this hour or the last."""
    begin = datetime.now(UTC) - 2 * HOUR
    rows = Rollup.objects.using(database).filter(span=3600, at__gt=begin)
    rows = rows.exclude(queue_name=EVERY_QUEUE).order_by()
    return rows.values_list("queue_name", flat=True).distinct()


# ── Workers without queues ─────────────────────────────────────────────────────


def _idle(
    database: str, alive: Sequence[WorkerStatus], known: Set[str]
) -> list[IdleServer]:
    """Who serves names that nobody uses, such as one that is misspelt.

    That the settings have a worker for it does not make a queue: some alias of TASKS
    has to accept it by name, or something must have been there within a week.
    """
    names = known | accepted_names(database)
    named = {each for worker in alive for each in worker.queues}
    unused = {each for each in named if not _matches_any(each, names)}
    unused -= _once_used(database, unused)
    found = [
        IdleServer(each, [queue for queue in each.queues if queue in unused])
        for each in alive
    ]
    return [each for each in found if each.queues]


def _matches_any(pattern: str, names: Iterable[str]) -> bool:
    if not pattern.endswith("*"):
        return pattern in names
    prefix = pattern[:-1]
    # Everything is served by "*", also what is yet to come.
    return not prefix or any(each.startswith(prefix) for each in names)


def _once_used(database: str, patterns: set[str]) -> set[str]:
    """Those of which rollups tell. They are kept for about a week."""
    if not patterns:
        return set()
    wanted = Q(queue_name__in=[each for each in patterns if not each.endswith("*")])
    for each in patterns:
        if each.endswith("*"):
            wanted |= Q(queue_name__startswith=each[:-1])
    rows = Rollup.objects.using(database).filter(wanted).order_by()
    names = set(rows.values_list("queue_name", flat=True).distinct())
    return {each for each in patterns if _matches_any(each, names)}
