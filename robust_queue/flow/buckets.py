"""Buckets: the arithmetic of rates. Seconds since the epoch, by whatever clock.

Tokens are the law: whoever begins has taken its own. Those that find none are given
appointments, one behind the other at exactly the rate, so that each comes back about
when there is one for it; an appointment is an estimate and promises nothing.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from robust_queue.backoffs import LONGEST_DELAY

from .rates import RateLimit

# A clock may be read that shows milliseconds only: who comes a moment later than the
# token will not be told that it is not there yet.
A_MOMENT = 0.002
# So many appointments are enough to ask whether they are still kept.
FAR = 2
# What is lost in adding up fractions.
_ROUNDING = 1e-6


@dataclass(slots=True)
class Bucket(ABC):
    """What is left of a rate; made for as long as its row is locked."""

    limit: RateLimit
    level: float
    counted_at: float
    # The latest appointment that was given; none if zero.
    spread_to: float
    _is_closed: bool = False

    @abstractmethod
    def advance(self, now: float) -> None:
        """It is that late now. A clock that was set back brings nothing."""

    @abstractmethod
    def _appointment(self, weight: float) -> float:
        """When so much will be left, behind everybody who was told to come back."""

    def take(self, weight: float) -> bool:
        """Take so much if it is there.

        Once somebody could not, nobody can in this round: what is light must not
        overtake what is heavy again and again.
        """
        self._is_closed = self._is_closed or self.level + _ROUNDING < weight
        if self._is_closed:
            return False
        self.level -= weight
        return True

    @property
    def is_far_ahead(self) -> bool:
        """Have so many been told to come back that it matters who they are?"""
        return self.spread_to > self.counted_at + FAR / self.limit.per_second

    def appointment(self, weight: float) -> float:
        """Tell somebody when to come back."""
        furthest = self.counted_at + LONGEST_DELAY.total_seconds()
        found = min(self._appointment(weight), furthest)
        self.spread_to = min(self.spread_to, furthest)
        return found + A_MOMENT

    def _set_back(self, seconds: float) -> None:
        # Else whoever is told to come back would wait for the lost time as well.
        self.spread_to = max(self.spread_to - seconds, 0.0)


class TokenBucket(Bucket):
    """Fills steadily, up to its depth."""

    def advance(self, now: float) -> None:
        passed = now - self.counted_at
        if passed < 0:
            self._set_back(-passed)
        else:
            self.level += passed * self.limit.per_second
        self.level = min(self.level, self.limit.depth)
        self.counted_at = now

    def _appointment(self, weight: float) -> float:
        pace = self.limit.per_second
        empty_at = self.counted_at - self.level / pace
        self.spread_to = max(self.spread_to, empty_at) + weight / pace
        return self.spread_to


class FixedWindow(Bucket):
    """Is full again at the beginning of each period, counted from the epoch."""

    def advance(self, now: float) -> None:
        period = self.limit.seconds
        if now < self.counted_at:
            # A window that the clock comes to again has been used up already. But
            # nobody waits for longer than a window for a clock that was far ahead.
            known_until = min(self.counted_at, now + period)
            self._set_back(self.counted_at - known_until)
            self.counted_at = known_until
        elif now // period > self.counted_at // period:
            self.level, self.counted_at = self.limit.size, now
        self.level = min(self.level, self.limit.size)

    def _appointment(self, weight: float) -> float:
        period = self.limit.seconds
        next_window = (self.counted_at // period + 1) * period
        place = max(self.spread_to, next_window)
        # As many to each window as it has room for, all of them at its beginning.
        self.spread_to = place + weight / self.limit.per_second
        return (place + _ROUNDING) // period * period


_KINDS: dict[str, type[Bucket]] = {
    "token_bucket": TokenBucket,
    "fixed_window": FixedWindow,
}


def bucket_of(
    limit: RateLimit, *, level: float, counted_at: float, spread_to: float
) -> Bucket:
    """A bucket as it was left."""
    return _KINDS[limit.algorithm](limit, level, counted_at, spread_to)
