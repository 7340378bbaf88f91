"""Reopening: pauses that have come to their end are taken away, and somebody told.

Nobody who polls waits for that. But jobs of a paused task were set aside, and have to
be brought back.
"""

from collections.abc import Set

from django.utils import timezone

from robust_queue.lifecycle.pause import end_pauses
from robust_queue.lifecycle.pause_task import end_task_pauses

from . import clock
from .actor import jittered

# Seconds between two looks, where no end is known to come earlier.
BETWEEN_LOOKS = 30.0
# Where there is no pause, jobs may be left of one whose row was deleted by hand.
BETWEEN_SEARCHES = 600.0
PAUSES = {"pauses", "task_pauses"}
FIRST_PAUSE = 2.0  # a resume that died halfway waits for it


class Reopening:
    """Looks now and then, and at each end that it knows of."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._next_look = clock.now() + jittered(FIRST_PAUSE)
        self._next_search = clock.now() + jittered(BETWEEN_SEARCHES)

    @property
    def pause(self) -> float:
        """Seconds until the next look."""
        return max(self._next_look - clock.now(), 0.0)

    def look_if_due(self, tables: Set[str]) -> None:
        """Look, if it is time; if there is no pause, only for what is left of some."""
        if self.pause > 0:
            return
        # First: should something go wrong, it must not in every turn.
        self._next_look = clock.now() + jittered(BETWEEN_LOOKS)
        if tables.isdisjoint(PAUSES) and clock.now() < self._next_search:
            return
        self._next_search = clock.now() + BETWEEN_SEARCHES
        for end_what_is_over in (end_pauses, end_task_pauses):
            if end := end_what_is_over(self._database):
                left = (end - timezone.now()).total_seconds()
                self._next_look = min(self._next_look, clock.now() + max(left, 0.0))
