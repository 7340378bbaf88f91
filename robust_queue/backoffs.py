"""Backoffs: how long to wait before an attempt is followed by another one.

Each is a value that can be called with the exception and the attempt, counted from
one. Durations are timedeltas or seconds.
"""

import math
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

# None: there is no other attempt at all.
Backoff: TypeAlias = Callable[[BaseException, int], timedelta | None]
Delays: TypeAlias = Sequence[timedelta | float]

LONGEST_DELAY = timedelta(days=36_525)

_NOTHING = timedelta(0)
_HOUR = timedelta(hours=1)


def exponential(
    base: timedelta | float = 20,
    *,
    factor: float = 2,
    cap: timedelta | float = _HOUR,
    jitter: float = 0.1,
) -> "Exponential":
    """Wait ``base``, then ``factor`` times as long before each further attempt.

    ``jitter`` is the fraction by which a delay may be shorter or longer, so that what
    failed together is not tried together. No delay is longer than ``cap``, jitter
    included.
    """
    return Exponential(
        base=duration("base", base),
        cap=duration("cap", cap),
        jitter=_number("jitter", jitter),
        factor=_number("factor", factor),
    )


def linear(
    base: timedelta | float = 20,
    *,
    cap: timedelta | float = _HOUR,
    jitter: float = 0.1,
) -> "Polynomial":
    """Wait ``base``, then twice, three times, four times as long."""
    return polynomial(base, power=1, cap=cap, jitter=jitter)


def polynomial(
    base: timedelta | float = 1,
    *,
    power: float = 4,
    cap: timedelta | float = timedelta(days=1),
    jitter: float = 0.1,
) -> "Polynomial":
    """Wait ``base`` times the ``power`` of the attempt: slow, then very slow."""
    return Polynomial(
        base=duration("base", base),
        cap=duration("cap", cap),
        jitter=_number("jitter", jitter),
        power=_number("power", power),
    )


def fixed(delay: timedelta | float, *, jitter: float = 0.1) -> "Polynomial":
    """Wait equally long before each attempt."""
    base, spread = duration("delay", delay), _number("jitter", jitter)
    cap = min(base * (1 + max(spread, 0)), LONGEST_DELAY)
    return Polynomial(base=base, cap=cap, jitter=spread, power=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing(ABC):
    """A backoff that may grow with each attempt, up to its cap."""

    base: timedelta
    cap: timedelta
    jitter: float

    def __post_init__(self) -> None:
        if self.base <= _NOTHING:
            raise ValueError(f"base must be longer than zero, got {self.base!r}.")
        if not self.base <= self.cap <= LONGEST_DELAY:
            raise ValueError(
                f"cap must be at least base ({self.base}) and at most "
                f"{LONGEST_DELAY.days:,} days, got {self.cap}."
            )
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be between 0 and 1, got {self.jitter!r}.")

    def __call__(self, exception: BaseException, attempt: int) -> timedelta:
        cap = self.cap.total_seconds()
        # Room for the jitter is left below the cap: jobs that have reached it would
        # otherwise be tried again at the very same time.
        delay = min(self._undisturbed(attempt), cap / (1 + self.jitter))
        spread = random.uniform(-self.jitter, self.jitter)  # noqa: S311
        return min(timedelta(seconds=delay * (1 + spread)), self.cap)

    def _undisturbed(self, attempt: int) -> float:
        try:
            return self.base.total_seconds() * self._growth(max(attempt, 1))
        except OverflowError:
            return math.inf

    @abstractmethod
    def _growth(self, attempt: int) -> float:
        """How many times the base the delay after this attempt is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(Growing):
    """Made by ``exponential()``."""

    factor: float

    def __post_init__(self) -> None:
        # A dataclass with slots is made twice, which breaks the short super().
        Growing.__post_init__(self)
        if not 1 <= self.factor < math.inf:
            raise ValueError(f"factor must be at least 1, got {self.factor!r}.")

    def _growth(self, attempt: int) -> float:
        return float(self.factor ** (attempt - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Polynomial(Growing):
    """Made by ``linear()``, ``polynomial()`` and ``fixed()``."""

    power: float

    def __post_init__(self) -> None:
        Growing.__post_init__(self)
        if not 0 <= self.power < math.inf:
            raise ValueError(f"power must not be negative, got {self.power!r}.")

    def _growth(self, attempt: int) -> float:
        return float(attempt**self.power)


@dataclass(frozen=True, slots=True)
class Listed:
    """Delays one after the other; the last one again and again. Without jitter."""

    delays: tuple[timedelta, ...]

    def __call__(self, exception: BaseException, attempt: int) -> timedelta:
        return self.delays[min(max(attempt, 1), len(self.delays)) - 1]


def from_list(delays: Delays) -> Listed:
    """A backoff that was declared as a list of delays."""
    found = tuple(duration("a delay", each) for each in delays)
    if not found:
        raise ValueError("a list of delays must have at least one.")
    for each in found:
        if not _NOTHING <= each <= LONGEST_DELAY:
            raise ValueError(f"a delay is out of reach: {each!r}.")
    return Listed(found)


def duration(name: str, value: Any) -> timedelta:
    """A timedelta or a number of seconds as a timedelta."""
    if isinstance(value, timedelta):
        return value
    seconds = _number(name, value, "a timedelta or a number of seconds")
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(f"{name} is out of reach: {value!r}.") from None


def _number(name: str, value: Any, demand: str = "a number") -> float:
    # Not isinstance: True is no number here.
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{name} must be {demand}, got {value!r}.")
    return float(value)
