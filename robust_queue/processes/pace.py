"""Pace: how long a worker that found nothing waits before it looks again."""

from collections.abc import Callable

from . import clock
from .actor import LONGEST_PAUSE, jittered

# Longer than a sender of news keeps silent, see lifecycle/wake.py: what it did not
# tell is found by the second look.
SECOND_LOOK = 0.025
# Where news is heard, polling is only the safety net.
RARELY = LONGEST_PAUSE


class Pace:
    """Steady where there is only polling; ever slower where news is heard."""

    def __init__(self, interval: float, *, hears: Callable[[], bool]) -> None:
        self._interval = interval
        self._hears = hears
        self._step = SECOND_LOOK
        self._next_look = 0.0

    @property
    def is_busy(self) -> bool:
        """Has there been work, or news of some, a moment ago?"""
        return self._step <= SECOND_LOOK

    def quicken(self) -> None:
        """There was work, or news of some: more may come any moment."""
        self._step = SECOND_LOOK
        self._next_look = clock.now() + SECOND_LOOK

    def pause(self, looked_at: float) -> float:
        """Seconds until the next look, given when the latest was begun.

        A look that came before its time, because a task had ended, does not count:
        the one that was planned is still to come.
        """
        if looked_at >= self._next_look:
            self._step = min(2 * self._step, RARELY)
            self._next_look = looked_at + jittered(self._step)
        if not self._hears():
            return jittered(self._interval)
        return max(self._next_look - clock.now(), 0.0)
