"""Is there anything left to do, for a supervisor that is to stop when there is not?"""

from collections.abc import Sequence

from django.utils import timezone

from robust_queue.configuration import WorkerConfiguration
from robust_queue.models import ClaimedExecution, ScheduledExecution
from robust_queue.stores import store_for


class Emptiness:
    """Asks whether anything is due, ready or running that these workers serve.

    Jobs for later do not count, nor do those of paused queues.
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
        due = ScheduledExecution.objects.using(self._database).filter(
            scheduled_at__lte=timezone.now()
        )
        return any(map(self._serves, due.values_list("queue_name", flat=True)[:1000]))

    def _is_ready(self) -> bool:
        return any(map(self._serves, store_for(self._database).queue_names()))

    def _is_running(self) -> bool:
        return ClaimedExecution.objects.using(self._database).exists()

    def _serves(self, queue: str) -> bool:
        return any(worker.serves(queue) for worker in self._workers)
