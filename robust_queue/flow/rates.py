"""Rates: so many in so much time."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import floor
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from robust_queue.compat import AnyTask, InvalidTask

from . import keys
from .keys import Key
from .values import check_group

logger = logging.getLogger("robust_queue")

Algorithm: TypeAlias = Literal["token_bucket", "fixed_window"]
Rate: TypeAlias = str | tuple[int, timedelta]
Weight: TypeAlias = float | Callable[..., float]

MOST = 1_000_000_000
SHORTEST_PERIOD = timedelta(milliseconds=1)
LONGEST_PERIOD = timedelta(days=366)
# A job that comes so many seconds late does not make the next one too early. A bucket
# that is full to the brim would lose what flows in meanwhile, and with it the rate.
LATENESS = 0.15
# Of a job. With less than a whole one more, nobody is let in on top of the burst.
MOST_FOR_LATENESS = 0.9

_RATE = re.compile(r"\s*(\d{1,10})\s*/\s*(\d{1,10})?\s*([a-z]+)\s*", re.ASCII)
_UNITS = {
    "ms": timedelta(milliseconds=1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("m", "min", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
}


class Demand(NamedTuple):
    """What a job needs to begin: so many tokens from the bucket of this key."""

    key: str
    weight: float


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most so many jobs with the same key begin in so much time, wherever they run.

    ``rate`` is a text like ``"100/minute"`` or ``"5/10s"``, or a count and a timedelta.
    ``key`` is a text or a function of the task's arguments; None: no limit for this
    call. Keys of different tasks are apart unless both name the same ``group``.

    ``burst`` is how many may begin at once after a time of rest, ``weight`` for how
    many a job counts: a number, or a function of the task's arguments.
    """

    rate: Rate
    key: Key = ""
    # None: the path of the task.
    group: str | None = None
    algorithm: Algorithm = "token_bucket"
    # None: what comes in a second, or in the period if that is shorter.
    burst: int | None = None
    weight: Weight = 1
    count: int = field(init=False, repr=False, compare=False)
    seconds: float = field(init=False, repr=False, compare=False)
    size: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        count, period = _count_and_period(self.rate)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "seconds", period.total_seconds())
        keys.check("RateLimit: key", self.key)
        check_group("RateLimit", self.group)
        self._check_algorithm()
        if not (callable(self.weight) or _is_number(self.weight)):
            raise InvalidTask(
                "RateLimit: weight must be a number above zero or a function of the "
                f"task's arguments, got {self.weight!r}."
            )
        object.__setattr__(self, "size", self._size())
        self._check_size()

    def _check_algorithm(self) -> None:
        if self.algorithm not in get_args(Algorithm):
            raise InvalidTask(
                "RateLimit: algorithm must be 'token_bucket' or 'fixed_window', got "
                f"{self.algorithm!r}."
            )
        if self.burst is None:
            return
        if self.algorithm == "fixed_window":
            raise InvalidTask("RateLimit: a fixed window has no burst but its count.")
        # Not isinstance: True is no count.
        if type(self.burst) is not int or not 1 <= self.burst <= MOST:
            raise InvalidTask(
                f"RateLimit: burst must be a whole number from 1 to {MOST:,}, got "
                f"{self.burst!r}."
            )

    def _size(self) -> float:
        if self.burst is not None:
            return self.burst
        if self.algorithm == "fixed_window" or callable(self.weight):
            # Nobody knows how much a function will ask for.
            return self.count
        return max(floor(min(self.count, self.per_second)), 1, self.weight)

    def _check_size(self) -> None:
        if not callable(self.weight) and self.weight > self.size:
            raise InvalidTask(
                f"RateLimit: a job of weight {self.weight:g} could never begin where "
                f"at most {self.size:g} may do so at once."
            )

    @property
    def per_second(self) -> float:
        """The rate itself."""
        return self.count / self.seconds

    @property
    def depth(self) -> float:
        """How much a bucket holds: its size, and a little for who comes late."""
        if self.algorithm == "fixed_window":
            return self.size
        return self.size + min(self.per_second * LATENESS, MOST_FOR_LATENESS)

    def key_of(self, task_path: str, value: Any = "") -> str:
        """The key of a value, as the row of its bucket has it."""
        return keys.key_of(self.group or task_path, value)

    def within_reach(self, weight: float) -> float:
        """That weight, or as much as can be had at all."""
        return min(weight, self.size)


def read(name: str, value: Any) -> RateLimit:
    """As a task declares it; the rate alone will do."""
    if isinstance(value, str | tuple):
        return RateLimit(value)
    if not isinstance(value, RateLimit):
        raise InvalidTask(f"{name} must be a RateLimit or a rate, got {value!r}.")
    return value


def demand_of(
    limit: RateLimit, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Demand | None:
    """What a call of this task needs to begin; None if it is not limited."""
    try:
        found = keys.values(limit.key, args, kwargs)
        if not found:
            return None
        value = _only(found)
        weight = limit.weight
        asked = weight(*args, **kwargs) if callable(weight) else weight
        key = limit.key_of(task.module_path, value)
    except Exception as error:
        raise InvalidTask(
            f"{task.module_path}: the rate limit of this call could not be found: "
            f"{type(error).__name__}: {error}"
        ) from error
    return Demand(key, _reachable(limit, task, asked))


def _only(values: Sequence[Any]) -> Any:
    if len(values) > 1:
        raise ValueError(f"a call has one key, not {len(values)}: join them to a text")
    return values[0]


def _reachable(limit: RateLimit, task: AnyTask, asked: Any) -> float:
    if not _is_number(asked):
        raise InvalidTask(
            f"{task.module_path}: the weight of this call must be a number above zero, "
            f"got {asked!r}."
        )
    if asked > limit.size:
        logger.warning(
            "%s: a call of weight %g counts as %g, which is all that may begin at "
            "once. A larger burst would count it in full.",
            task.module_path,
            asked,
            limit.size,
        )
    return limit.within_reach(asked)


def _is_number(value: Any) -> bool:
    # Not isinstance: True is no number here.
    return type(value) in (int, float) and 0 < value <= MOST


# ── Rates as text ──────────────────────────────────────────────────────────────


def _count_and_period(rate: Any) -> tuple[int, timedelta]:
    match rate:
        case str():
            count, period = _from_text(rate)
        case (int() as count, timedelta() as period) if type(count) is int:
            pass
        case _:
            raise _nonsense(rate)
    if not 1 <= count <= MOST:
        raise InvalidTask(
            f"RateLimit: {rate!r} is no rate: the count must be from 1 to {MOST:,}."
        )
    if not SHORTEST_PERIOD <= period <= LONGEST_PERIOD:
        raise InvalidTask(
            f"RateLimit: {rate!r} is no rate: the period must be from a millisecond "
            f"to {LONGEST_PERIOD.days} days."
        )
    return count, period


def _from_text(rate: str) -> tuple[int, timedelta]:
    found = _RATE.fullmatch(rate)
    if found is None or found[3] not in _UNITS:
        raise _nonsense(rate)
    try:
        return int(found[1]), int(found[2] or 1) * _UNITS[found[3]]
    except OverflowError:
        return int(found[1]), timedelta.max


def _nonsense(rate: Any) -> InvalidTask:
    return InvalidTask(
        f"RateLimit: {rate!r} is no rate. It is a text like '100/minute', '5/10s' or "
        "'1/day', or a count and a timedelta."
    )
