"""Whether an attempt that went wrong is followed by another one, and when.

Values and pure decisions: nothing here knows the database, and ``now`` is handed in.
What a task declares is read from the task as the running code has it, so that a
change of policy counts for jobs that are already waiting.
"""

import logging
import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from inspect import iscoroutinefunction
from typing import Any, Literal, TypeAlias, get_args

from .compat import AnyTask, InvalidTask

logger = logging.getLogger("robust_queue")

# Given the exception and the attempt, counted from one: how long to wait before the
# next one, or None for none at all.
Backoff: TypeAlias = Callable[[BaseException, int], timedelta | None]
OnCrash: TypeAlias = Literal["fail", "retry"]

CRASH_ATTEMPTS = 3
MOST_ATTEMPTS = 32_000  # what the column holds, with room for an operator's retries
LONGEST_DELAY = timedelta(days=36_525)

_NOTHING = timedelta(0)


# ── Backoff ────────────────────────────────────────────────────────────────────


def exponential(
    base: timedelta | float = 20,
    *,
    factor: float = 2,
    cap: timedelta | float = timedelta(hours=1),
    jitter: float = 0.1,
) -> "Exponential":
    """Wait ``base``, then ``factor`` times as long before each further attempt.

    Durations are timedeltas or seconds. ``jitter`` is the fraction by which a delay
    may be shorter or longer, so that what failed together is not tried together. No
    delay is longer than ``cap``, jitter included.
    """
    return Exponential(
        base=_duration("base", base),
        factor=_number("factor", factor),
        cap=_duration("cap", cap),
        jitter=_number("jitter", jitter),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """A backoff that grows with each attempt; made by ``exponential()``."""

    base: timedelta
    factor: float
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
        if not 1 <= self.factor < math.inf:
            raise ValueError(f"factor must be at least 1, got {self.factor!r}.")
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
            growth = float(self.factor) ** max(attempt - 1, 0)
        except OverflowError:
            return math.inf
        return self.base.total_seconds() * growth


def _duration(name: str, value: Any) -> timedelta:
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


DEFAULT_BACKOFF = exponential()


# ── Decisions ──────────────────────────────────────────────────────────────────


def retry_at(
    task: AnyTask | None, error: BaseException, *, attempts: int, now: datetime
) -> datetime | None:
    """When an attempt that raised is followed by another one; None: never.

    ``attempts`` counts those that were begun, this one included.
    """
    if attempts >= (_max_attempts(task) or 1):
        return None
    return _after_backoff(task, error, attempts, now)


def retry_at_after_crash(
    task: AnyTask | None, error: BaseException, *, attempts: int, now: datetime
) -> datetime | None:
    """When an attempt whose process died is followed by another one; None: never."""
    if not may_run_again(task, attempts=attempts):
        return None
    return _after_backoff(task, error, attempts, now)


def may_run_again(task: AnyTask | None, *, attempts: int) -> bool:
    """Would a crash of this attempt lead to another run, if its backoff agrees?"""
    declared = _max_attempts(task)
    match getattr(task, "on_crash", None):
        case "fail":
            return False
        case "retry":
            # Not for ever: it may be the task that kills its process.
            return attempts < (declared or CRASH_ATTEMPTS)
        case _:
            return attempts < (declared or 1)


def _max_attempts(task: AnyTask | None) -> int | None:
    # Neither a task that is gone nor one of another backend has declared any.
    return getattr(task, "max_attempts", None)


def _after_backoff(
    task: AnyTask | None, error: BaseException, attempts: int, now: datetime
) -> datetime | None:
    backoff: Backoff = getattr(task, "backoff", None) or DEFAULT_BACKOFF
    try:
        delay = _sensible(backoff(error, attempts))
    except BaseException:
        # Code of the user, who may have raised anything. The attempt is over; whether
        # there is another one must not depend on this.
        logger.exception(
            "The backoff of %s failed: the default is used instead.",
            getattr(task, "module_path", task),
        )
        delay = DEFAULT_BACKOFF(error, attempts)
    return None if delay is None else now + delay


def _sensible(delay: Any) -> timedelta | None:
    if delay is None:
        return None
    if not isinstance(delay, timedelta):
        raise TypeError(f"A backoff returns a timedelta or None, not {delay!r}.")
    if not _NOTHING <= delay <= LONGEST_DELAY:
        raise ValueError(f"A backoff returned a delay that is out of reach: {delay!r}.")
    return delay


# ── Declarations ───────────────────────────────────────────────────────────────


def check_policies(*, max_attempts: Any, backoff: Any, on_crash: Any) -> None:
    """Refuse what a task cannot declare; None means that it declares nothing."""
    if max_attempts is not None and not _is_count(max_attempts):
        raise InvalidTask(
            f"max_attempts must be a whole number from 1 to {MOST_ATTEMPTS:,}, got "
            f"{max_attempts!r}."
        )
    if backoff is not None and (not callable(backoff) or iscoroutinefunction(backoff)):
        raise InvalidTask(
            "backoff must be a function of the exception and the attempt that returns "
            f"a timedelta or None, such as exponential(), got {backoff!r}."
        )
    if on_crash is not None and on_crash not in get_args(OnCrash):
        raise InvalidTask(f"on_crash must be 'fail' or 'retry', got {on_crash!r}.")


def _is_count(value: Any) -> bool:
    # Not isinstance: True is no count.
    return type(value) is int and 1 <= value <= MOST_ATTEMPTS
