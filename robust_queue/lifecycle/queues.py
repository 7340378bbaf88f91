"""The queues of a database. They exist by being named: in jobs, pauses or settings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min
from django.utils import timezone

from robust_queue import registry
from robust_queue.aliases import backends_of
from robust_queue.configuration import current
from robust_queue.models import (
    BlockedExecution,
    ClaimedExecution,
    Pause,
    ReadyExecution,
    Rollup,
    ScheduledExecution,
)
from robust_queue.models.queues import in_force
from robust_queue.stores import store_for

from .names import queue_name_problem
from .workers import servers

NO_TIME = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """A queue: how much waits in it, for how long, and whether it is paused."""

    name: str
    ready: int = 0
    oldest_ready_at: datetime | None = None
    latency: timedelta = NO_TIME
    paused_at: datetime | None = None
    paused_until: datetime | None = None
    # Counted only for those who ask for the whole of it.
    scheduled: int = 0
    blocked: int = 0
    running: int = 0

    @property
    def is_paused(self) -> bool:
        return self.paused_at is not None


def queues(database: str) -> list[QueueStatus]:
    """Every queue that has ready jobs, is paused, or is named in the settings.

    Two statements, however many queues there are. The first one counts every ready
    job: it is for people who look, not for loops that poll.
    """
    return list(_statuses(database))


def queues_in_full(database: str) -> list[QueueStatus]:
    """Every queue that has unfinished jobs, is paused, or is named in the settings.

    Five statements: also jobs that are scheduled, blocked and running are counted.
    """
    return list(_statuses(database, others=_OTHERS))


def queue_in_full(database: str, name: str) -> QueueStatus:
    """One queue, and all that is in it; nothing if nobody has ever named it."""
    (status,) = _statuses(database, others=_OTHERS, name=name)
    return status


def queue_names(database: str) -> list[str]:
    """The names of the same queues, without counting their jobs."""
    pauses = Pause.objects.using(database).filter(in_force(timezone.now()))
    paused = pauses.values_list("queue_name", flat=True)
    with_jobs = store_for(database).queue_names()
    return sorted({*with_jobs, *paused, *configured_names(database)})


def known_names(database: str) -> set[str]:
    """The same names, and those that declared tasks are sent to."""
    return {*queue_names(database), *_declared_names()}


def is_known(database: str, name: str) -> bool:
    """Is there such a queue: is it named by code, settings, a worker, jobs, its past?

    No statement for what code or settings name, some small ones for any other.
    """
    if name in configured_names(database) | _declared_names():
        return True
    if any(_rows(model, database, name).exists() for model in _NAMING):
        return True
    return any(name in each.queues for each in servers(database))


def _declared_names() -> set[str]:
    return {str(task.queue_name) for task in registry.discover().values()}


# One that is empty now and then is the same queue all the time: rollups tell of it.
_NAMING: Sequence[Any] = (
    ReadyExecution,
    Pause,
    Rollup,
    ClaimedExecution,
    ScheduledExecution,
    BlockedExecution,
)


_OTHERS: Mapping[str, Any] = {
    "scheduled": ScheduledExecution,
    "blocked": BlockedExecution,
    "running": ClaimedExecution,
}


def _statuses(
    database: str, *, others: Mapping[str, Any] | None = None, name: str | None = None
) -> Iterator[QueueStatus]:
    now = timezone.now()
    ready = _ready(_rows(ReadyExecution, database, name), now)
    paused = pauses_in_force(database, now, name)
    counts = {
        state: _counts(_rows(model, database, name))
        for state, model in (others or {}).items()
    }
    named = configured_names(database) if name is None else {name}
    for each in sorted(named.union(ready, paused, *counts.values())):
        numbers = {state: found.get(each, 0) for state, found in counts.items()}
        facts = {**ready.get(each, {}), **paused.get(each, {}), **numbers}
        yield QueueStatus(name=each, **facts)


def _rows(model: Any, database: str, name: str | None) -> Any:
    rows = model.objects.using(database).order_by()
    return rows if name is None else rows.filter(queue_name=name)


def _ready(rows: Any, now: datetime) -> dict[str, dict[str, Any]]:
    by_queue = rows.values("queue_name").annotate(n=Count("pk"), at=Min("created_at"))
    return {
        name: what_waits(count, oldest, now)
        for name, count, oldest in by_queue.values_list("queue_name", "n", "at")
    }


def what_waits(ready: int, oldest: datetime, now: datetime) -> dict[str, Any]:
    """So many are ready, and since then: as the status of a queue has it."""
    # Another machine's clock may be ahead of this one's.
    latency = max(now - oldest, NO_TIME)
    return {"ready": ready, "oldest_ready_at": oldest, "latency": latency}


def pauses_in_force(
    database: str, now: datetime, name: str | None = None
) -> dict[str, dict[str, Any]]:
    """Since when, and until when, which queues are paused."""
    pauses = _rows(Pause, database, name).filter(in_force(now))
    facts = pauses.values_list("queue_name", "created_at", "until")
    return {
        name: {"paused_at": since, "paused_until": until}
        for name, since, until in facts
    }


def _counts(rows: Any) -> dict[str, int]:
    by_queue = rows.values("queue_name").annotate(n=Count("pk"))
    return dict(by_queue.values_list("queue_name", "n"))


def configured_names(database: str) -> set[str]:
    """Names that workers serve, or that an alias on this database accepts."""
    named = {name for each in current().effective_workers for name in each.patterns}
    served = {name for name in named if queue_name_problem(name) is None}
    return served | accepted_names(database)


def accepted_names(database: str) -> set[str]:
    """Names that an alias on this database accepts, where it does not accept all.

    Also the queues of its external tasks: somebody is to come for these in any case.
    """
    aliases = {each.alias: each for each in backends_of(database)}
    named = {name for each in aliases.values() for name in each.queues}
    tasks = registry.discover().values()
    outside = [each for each in tasks if registry.is_external(each)]
    named |= {str(each.queue_name) for each in outside if each.backend in aliases}
    return {name for name in named if queue_name_problem(name) is None}
