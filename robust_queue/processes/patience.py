"""How long to wait after trouble: longer each time, never in step with others."""

import random

from . import clock


class Patience:
    """Counts failures in a row, and tells when to try again."""

    def __init__(self, first: float = 0.1, longest: float = 5.0) -> None:
        self._first = first
        self._longest = longest
        self._failures = 0
        self._until = 0.0

    @property
    def is_over(self) -> bool:
        """May it be tried now?"""
        return clock.now() >= self._until

    @property
    def left(self) -> float:
        """Seconds until it may be tried."""
        return max(self._until - clock.now(), 0.0)

    @property
    def failures(self) -> int:
        return self._failures

    @property
    def is_worth_telling(self) -> bool:
        """Is it the first failure that comes next, the second, third, fifth …?"""
        return self._failures.bit_count() <= 1

    def fail(self) -> float:
        """Note a failure; return the pause that follows it."""
        # Bounded before it is a power: an outage may last for days.
        pause = min(self._first * 2.0 ** min(self._failures, 30), self._longest)
        pause *= random.uniform(0.5, 1.0)  # noqa: S311
        self._failures += 1
        self._until = clock.now() + pause
        return pause

    def succeed(self) -> None:
        self._failures = 0
        self._until = 0.0
