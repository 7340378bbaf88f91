"""Paused tasks: of which jobs a worker begins none for now."""

from collections.abc import Sequence

from robust_queue.lifecycle.pause_task import paused_tasks, set_aside
from robust_queue.stores.rows import Claim

from . import clock

# Seconds for which an answer holds.
BETWEEN_QUESTIONS = 1.0


class PausedTasks:
    """Asks the database now and then, whenever something has been claimed."""

    def __init__(self, database: str, *, worker_id: str) -> None:
        self._database = database
        self._worker_id = worker_id
        self._next_question = 0.0
        self._paths: set[str] = set()

    def set_aside(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """Set aside what must not begin, and return the rest."""
        if not claims:
            return claims
        self._ask_if_due()
        if self._paths.isdisjoint(each.task_path for each in claims):
            return claims
        return set_aside(self._database, claims, worker_id=self._worker_id)

    def _ask_if_due(self) -> None:
        if clock.now() >= self._next_question:
            self._paths = paused_tasks(self._database)
            self._next_question = clock.now() + BETWEEN_QUESTIONS
