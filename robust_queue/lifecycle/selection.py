"""Which jobs an operator means, and the walk over them.

Whatever is done to many jobs at once goes this way: in batches, each a transaction of
its own, so that no lock is held for long and memory does not grow with their number.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from django.db.models import Q, QuerySet

from robust_queue.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    Job,
    ReadyExecution,
    ScheduledExecution,
)
from robust_queue.models.jobs import STATES
from robust_queue.policies import Kind

BATCH_SIZE = 500

TABLES: dict[str, Any] = {
    "failed": FailedExecution,
    "scheduled": ScheduledExecution,
    "ready": ReadyExecution,
    "blocked": BlockedExecution,
    "claimed": ClaimedExecution,
    "finished": FinishedExecution,
}
ENDED = ("failed", "finished")

# Where it is not known yet what comes of a job, in the direction of the arrows.
PENDING = "pending"
PENDING_STATES = ("scheduled", "blocked", "ready", "claimed")

# As people write them: the usual kind has no name of its own in the table.
KINDS = {kind.value or "error": kind for kind in Kind}

# Failed jobs are left where they are if somebody has retried them meanwhile. Those that
# wait are followed on their way until somebody claims them.
_WAITING = ("scheduled", "blocked", "ready")
STATES_TO_LEAVE = {"failed": ("failed",), **dict.fromkeys(_WAITING, _WAITING)}


def states_within(state: str) -> tuple[str, ...]:
    """The states that a composite one stands for, or that very state."""
    return PENDING_STATES if state == PENDING else (state,)


class Wanted(Protocol):
    """Tells which rows of one table are meant."""

    @property
    def state(self) -> str: ...

    def rows(self, database: str) -> Iterator[QuerySet[Any]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What jobs are to have in common. What is not said does not matter."""

    state: str = "failed"
    task_path: str | None = None
    queue_name: str | None = None
    # When they came to stand where they stand: from this moment on, and before that.
    since: datetime | None = None
    until: datetime | None = None
    ids: Collection[UUID] | None = None
    # Of failed jobs only. An exception is named by its whole path, or by the end of it.
    kind: Kind | None = None
    exception_class: str | None = None

    def __post_init__(self) -> None:
        if self.state not in TABLES:
            known = ", ".join(TABLES)
            raise ValueError(f"state must be one of {known}, got {self.state!r}.")
        asks_for_failures = self.kind is not None or self.exception_class is not None
        if asks_for_failures and self.state != "failed":
            raise ValueError("Only failed jobs have a kind or an exception.")

    def rows(self, database: str) -> Iterator[QuerySet[Any]]:
        """The rows that match; where ids are given, some of them at a time."""
        rows: QuerySet[Any] = TABLES[self.state].objects.using(database)
        rows = rows.filter(*self._conditions())
        if self.ids is None:
            yield rows
            return
        ids = sorted(set(self.ids))
        for start in range(0, len(ids), BATCH_SIZE):
            yield rows.filter(pk__in=ids[start : start + BATCH_SIZE])

    def _conditions(self) -> Iterator[Q]:
        has_ended = self.state in ENDED
        moment = "finished_at" if has_ended else "created_at"
        queue = "job__queue_name" if has_ended else "queue_name"
        conditions = {
            "job__task_path": self.task_path,
            queue: self.queue_name,
            f"{moment}__gte": self.since,
            f"{moment}__lt": self.until,
            "kind": self.kind,
        }
        yield from (
            Q((it, value)) for it, value in conditions.items() if value is not None
        )
        if name := self.exception_class:
            yield Q(exception_class=name) | Q(exception_class__endswith=f".{name}")


@dataclass(frozen=True, slots=True)
class Tally:
    """How many jobs were met, how many were changed, and why others were not."""

    matched: int = 0
    done: int = 0
    # By where they stand now, such as "claimed", or "gone".
    passed_over: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "Tally") -> "Tally":
        passed_over = Counter(self.passed_over) + Counter(other.passed_over)
        return Tally(
            self.matched + other.matched, self.done + other.done, dict(passed_over)
        )


# Told after each batch what was done so far. Whoever returns False has seen enough.
OnProgress: TypeAlias = Callable[[Tally], bool | None]


def in_batches(
    database: str,
    wanted: Wanted,
    change: Callable[[Sequence[UUID]], Tally],
    on_progress: OnProgress | None = None,
) -> Tally:
    """Change all jobs that are wanted, some at a time; return how that went."""
    tally = Tally()
    for ids in walk(database, wanted):
        tally += change(ids)
        if on_progress is not None and on_progress(tally) is False:
            break
    return tally


def walk(database: str, wanted: Wanted) -> Iterator[list[UUID]]:
    """The ids that are wanted, in their order, in batches.

    Each batch begins behind the last one, so that no job is met twice, whatever becomes
    of it. And none is met that comes behind those that were there at first: failures
    may come faster than they are dealt with.
    """
    for rows in wanted.rows(database):
        keys = rows.order_by("pk").values_list("pk", flat=True)
        end = keys.last()
        batch = [] if end is None else list(keys.filter(pk__lte=end)[:BATCH_SIZE])
        while batch:
            yield batch
            if len(batch) < BATCH_SIZE:
                break
            behind = keys.filter(pk__gt=batch[-1], pk__lte=end)
            batch = list(behind[:BATCH_SIZE])


def count(database: str, wanted: Wanted) -> int:
    """How many jobs are wanted. Looks at each of them."""
    return sum(rows.order_by().count() for rows in wanted.rows(database))


def standing(database: str, ids: Sequence[UUID]) -> dict[UUID, str]:
    """Where these jobs stand; those that are gone are left out."""
    jobs = Job.objects.using(database).filter(pk__in=ids).with_state()
    # Some of the columns hold a megabyte.
    narrow = jobs.only("id", *(f"{relation}__job" for relation in STATES))
    return {job.id: job.state for job in narrow}
