"""Pace: how long a worker that found nothing waits before it looks again."""

from collections.abc import Callable

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
        self._next = SECOND_LOOK

    def quicken(self) -> None:
        """There was work, or news of some: more may come any moment."""
        self._next = SECOND_LOOK

    def pause(self) -> float:
        """Seconds until the next look, not in step with other workers."""
        if not self._hears():
            self.quicken()
            return jittered(self._interval)
        pause, self._next = self._next, min(2 * self._next, RARELY)
        return jittered(pause)
