"""The scheduler: enqueues recurring tasks at their instants."""

from collections.abc import Sequence

from django.utils import timezone

from robust_queue.lifecycle import recur
from robust_queue.recurrence import Recurrence

from .actor import LONGEST_PAUSE, Actor


class Scheduler(Actor):
    """Follows the cursors in the database, as every other scheduler does."""

    kind = "Scheduler"

    def __init__(self, recurrences: Sequence[Recurrence], *, database: str) -> None:
        super().__init__(database)
        self._recurrences = recurrences
        self._is_installed = False

    def turn(self) -> float:
        if not self._is_installed:
            recur.install(self.database, self._recurrences)
            self._is_installed = True
        recur.recur(self.database)
        return self._pause()

    def _pause(self) -> float:
        upcoming = recur.next_instant(self.database)
        if upcoming is None:
            return LONGEST_PAUSE
        # Not longer: another scheduler, or a person, may move the cursors meanwhile.
        left = (upcoming - timezone.now()).total_seconds()
        return min(max(left, 0.0), LONGEST_PAUSE)
