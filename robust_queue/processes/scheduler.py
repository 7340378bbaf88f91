"""The scheduler: enqueues recurring tasks at their instants."""

from collections.abc import Sequence

from django.utils import timezone

from robust_queue.lifecycle.install import install, reaffirm
from robust_queue.lifecycle.recur import next_instant, recur
from robust_queue.lifecycle.remit import Remit
from robust_queue.recurrence import Recurrence

from . import clock
from .actor import Actor, jittered

# Seconds. How long a declaration may be silent is told where it is judged.
BETWEEN_INSPECTIONS = 90.0
# Nobody tells a scheduler what a person has changed: it takes no longer than that.
LONGEST_PAUSE = 4.0
# What is due and was not fired is in the hands of another scheduler.
PAUSE_IN_VAIN = 0.5


class Scheduler(Actor):
    """Follows the cursors in the database, as every other scheduler does."""

    kind = "Scheduler"

    def __init__(self, recurrences: Sequence[Recurrence], *, database: str) -> None:
        super().__init__(database)
        self._recurrences = recurrences
        self._remit = Remit({each.key for each in recurrences})
        self._is_installed = False
        self._next_inspection = 0.0
        self._is_stopping = False

    def turn(self) -> float:
        if self._is_stopping:
            return 0.0
        if not self._is_installed:
            self._inspect()
        pause = self._fire()
        # Behind it: whoever holds a row that is to be looked after holds nobody up.
        if clock.now() >= self._next_inspection:
            self._inspect()
        return pause

    def _fire(self) -> float:
        left = self._seconds_left()
        if left > 0:
            return left
        fired = recur(self.database, remit=self._remit)
        return max(self._seconds_left(), 0.0 if fired else PAUSE_IN_VAIN)

    def stop(self) -> None:
        self._is_stopping = True

    def _inspect(self) -> None:
        # Before it is tried: what fails is not to be tried in every turn.
        self._next_inspection = clock.now() + jittered(BETWEEN_INSPECTIONS)
        bring_in = reaffirm if self._is_installed else install
        bring_in(self.database, self._recurrences)
        self._is_installed = True

    def _seconds_left(self) -> float:
        """Until the next instant, but not longer than a person would wait."""
        upcoming = next_instant(self.database, self._remit)
        if upcoming is None:
            return LONGEST_PAUSE
        left = (upcoming - timezone.now()).total_seconds()
        return min(left, LONGEST_PAUSE)
