"""The queues of a database. They exist by being named: in jobs, pauses or settings."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min
from django.utils import timezone

from robust_queue.aliases import backends_of
from robust_queue.configuration import current
from robust_queue.models import Pause, ReadyExecution
from robust_queue.stores import store_for

from .names import queue_name_problem

NO_TIME = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """A queue: how much waits in it, for how long, and whether it is paused."""

    name: str
    ready: int = 0
    oldest_ready_at: datetime | None = None
    latency: timedelta = NO_TIME
    paused_at: datetime | None = None

    @property
    def is_paused(self) -> bool:
        return self.paused_at is not None


def queues(database: str) -> list[QueueStatus]:
    """Every queue that has ready jobs, is paused, or is named in the settings.

    Two statements, however many queues there are. The first one counts every ready
    job: it is for people who look, not for loops that poll.
    """
    now = timezone.now()
    waiting = {name: (count, oldest) for name, count, oldest in _waiting(database)}
    paused = dict(Pause.objects.using(database).values_list("queue_name", "created_at"))
    found = []
    for name in sorted({*waiting, *paused, *_configured(database)}):
        count, oldest = waiting.get(name, (0, None))
        status = QueueStatus(
            name=name,
            ready=count,
            oldest_ready_at=oldest,
            # Another machine's clock may be ahead of this one's.
            latency=max(now - oldest, NO_TIME) if oldest else NO_TIME,
            paused_at=paused.get(name),
        )
        found.append(status)
    return found


def queue_names(database: str) -> list[str]:
    """The names of the same queues, without counting their jobs."""
    paused = Pause.objects.using(database).values_list("queue_name", flat=True)
    with_jobs = store_for(database).queue_names()
    return sorted({*with_jobs, *paused, *_configured(database)})


def _waiting(database: str) -> Any:
    by_queue = ReadyExecution.objects.using(database).values("queue_name").order_by()
    return by_queue.annotate(count=Count("pk"), oldest=Min("created_at")).values_list(
        "queue_name", "count", "oldest"
    )


def _configured(database: str) -> set[str]:
    """Names that workers serve, or that an alias on this database accepts."""
    named = {name for each in current().effective_workers for name in each.patterns}
    named.update(*(backend.queues for backend in backends_of(database)))
    return {name for name in named if queue_name_problem(name) is None}
