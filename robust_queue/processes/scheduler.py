"""The scheduler: enqueues recurring tasks at their instants."""

from collections.abc import Sequence

from django.utils import timezone

from robust_queue.lifecycle.install import install, put_back
from robust_queue.lifecycle.recur import next_instant, recur
from robust_queue.recurrence import Recurrence

from . import clock
from .actor import Actor, jittered

INSPECTION = 30.0
IDLE_PAUSE = 4.0


class Scheduler(Actor):
    """Follows the cursors in the database, as every other scheduler does."""

    kind = "Scheduler"

    def __init__(self, recurrences: Sequence[Recurrence], *, database: str) -> None:
        super().__init__(database)
        self._recurrences = recurrences
        self._is_installed = False
        self._next_inspection = 0.0

    def turn(self) -> float:
        if clock.now() >= self._next_inspection:
            self._inspect()
        recur(self.database)
        return self._pause()

    def _inspect(self) -> None:
        bring_in = put_back if self._is_installed else install
        bring_in(self.database, self._recurrences)
        self._is_installed = True
        self._next_inspection = clock.now() + INSPECTION

    def _pause(self) -> float:
        upcoming = next_instant(self.database)
        # Not longer: another scheduler, or a person, may move the cursors meanwhile.
        pause = jittered(IDLE_PAUSE)
        if upcoming is None:
            return pause
        left = (upcoming - timezone.now()).total_seconds()
        return min(max(left, 0.0), pause)
