"""Is there anything left to do, for a supervisor that is to stop when there is not?"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from robust_queue import registry
from robust_queue.configuration import WorkerConfiguration
from robust_queue.models import ClaimedExecution, ScheduledExecution
from robust_queue.stores import store_for


class Emptiness:
    """Asks whether anything is due, ready or running that these workers serve.

    Jobs for later do not count, nor do those of paused queues, or of external tasks,
    which are left to workers outside. Without workers there are dispatchers only, which
    are done when nothing is due.
    """

    def __init__(self, database: str, workers: Sequence[WorkerConfiguration]) -> None:
        self._database = database
        self._workers = workers
        self._was_empty = False

    def __call__(self) -> bool:
        # Twice: a job may have moved against the arrows behind the first look.
        was_empty, self._was_empty = self._was_empty, self._is_empty()
        return was_empty and self._was_empty

    def _is_empty(self) -> bool:
        # In the direction of the arrows: what moves on is met at the next table.
        return not (self._is_due() or self._is_ready() or self._is_running())

    def _is_due(self) -> bool:
        scheduled = ScheduledExecution.objects.using(self._database)
        due = scheduled.filter(scheduled_at__lte=timezone.now())
        return self._serves_any(_queues_of(due)) if self._workers else due.exists()

    def _is_ready(self) -> bool:
        return self._serves_any(store_for(self._database).queue_names())

    def _is_running(self) -> bool:
        # Also in the hands of other supervisors: it may go back to the queue.
        claims = ClaimedExecution.objects.using(self._database)
        return self._serves_any(_queues_of(claims))

    def _serves_any(self, queues: Iterable[str]) -> bool:
        own = set(queues) - registry.external_queues()
        return any(each.serves(name) for name in own for each in self._workers)


def _queues_of(rows: QuerySet[Any]) -> Iterable[str]:
    return rows.order_by().values_list("queue_name", flat=True).distinct()
