"""Concurrency: at most so many of a kind run at a time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from robust_queue.compat import AnyTask, InvalidTask

from . import keys
from .keys import Key
from .values import RESERVED, check_group, period

OnConflict: TypeAlias = Literal["block", "discard"]

MOST = 1_000_000
JOINED_LENGTH = 1024

# The group of runs of recurring tasks that wait for each other. No other one may be
# called like that.
TURNS = f"{RESERVED}recurring"

# Where a function keeps what was declared of it before it became a task.
_ATTRIBUTE = "_robust_queue_concurrency"


@dataclass(frozen=True, slots=True)
class Concurrency:
    """At most ``limit`` jobs with the same key run at a time, wherever they run.

    ``key`` is a text or a function of the task's arguments, which may return a model,
    several values, or None: no limit for this call. Keys of different tasks are apart
    unless both name the same ``group``.
    """

    key: Key = ""
    limit: int = 1
    # None: default_concurrency_control_period.
    duration: timedelta | None = None
    # None: the path of the task.
    group: str | None = None
    on_conflict: OnConflict = "block"

    def __post_init__(self) -> None:
        keys.check("Concurrency: key", self.key)
        # Not isinstance: True is no count.
        if type(self.limit) is not int or not 1 <= self.limit <= MOST:
            raise InvalidTask(
                f"Concurrency: limit must be a whole number from 1 to {MOST:,}, got "
                f"{self.limit!r}."
            )
        check_group("Concurrency", self.group)
        if self.on_conflict not in get_args(OnConflict):
            raise InvalidTask(
                "Concurrency: on_conflict must be 'block' or 'discard', got "
                f"{self.on_conflict!r}."
            )
        found = period("Concurrency: duration", self.duration)
        object.__setattr__(self, "duration", found)

    def keys_of(
        self, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[str]:
        """The keys of a call; none if it is not limited."""
        group = self.group or task.module_path
        return [
            keys.key_of(group, each) for each in keys.values(self.key, args, kwargs)
        ]

    def is_about(self, task_path: str, key: str) -> bool:
        """Is this a key of this limit?"""
        return key.startswith(keys.fitting((self.group or task_path) + "/")[:150])


def read(name: str, value: Any) -> tuple[Concurrency, ...]:
    """One limit or several, as a task declares them."""
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not found or not all(isinstance(each, Concurrency) for each in found):
        raise InvalidTask(f"{name} must be a Concurrency or several, got {value!r}.")
    groups = {each.group for each in found}
    if len(groups) < len(found):
        raise InvalidTask(
            f"{name}: several limits of one task need a group each, to be told apart."
        )
    if len({each.on_conflict for each in found}) > 1:
        raise InvalidTask(f"{name}: on_conflict must be the same for all limits.")
    return found


def keys_of(task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The keys of a call of this task, as its job's row has them."""
    limits: Sequence[Concurrency] = getattr(task, "concurrency", None) or ()
    found = {key for each in limits for key in _keys(each, task, args, kwargs)}
    return _joined(found, task.module_path)


def _joined(found: Collection[str], whose: str) -> str:
    joined = keys.SEPARATOR.join(sorted(found))
    if len(joined) > JOINED_LENGTH:
        raise InvalidTask(
            f"{whose}: {len(found)} concurrency keys are too many, or too long: "
            f"together they may have {JOINED_LENGTH} characters."
        )
    return joined


def _keys(
    limit: Concurrency, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[str]:
    try:
        return limit.keys_of(task, args, kwargs)
    except Exception as error:
        raise InvalidTask(
            f"{task.module_path}: the concurrency key of this call could not be "
            f"found: {type(error).__name__}: {error}"
        ) from error


def limit_of(task: AnyTask | None, key: str) -> int | None:
    """How many may run at a time as the task declares it; None: it says nothing."""
    if key.startswith(f"{TURNS}/"):
        return 1
    limits: Sequence[Concurrency] = getattr(task, "concurrency", None) or ()
    if task is None or not limits:
        return None
    if len(limits) == 1:
        return limits[0].limit
    about = [each for each in limits if each.is_about(task.module_path, key)]
    # The name of one group may be the beginning of another's.
    about.sort(key=lambda each: len(each.group or task.module_path))
    return about[-1].limit if about else None


def with_turn(joined: str, recurring_key: str) -> str:
    """The keys of a job, and the one that lets runs of a recurring task take turns."""
    turn = keys.key_of(TURNS, recurring_key)
    return _joined({*keys.split(joined), turn}, recurring_key)


def declared_under(function: Any) -> tuple[Concurrency, ...]:
    """What decorators have declared of a function before it became a task."""
    found: tuple[Concurrency, ...] = getattr(function, _ATTRIBUTE, ())
    return found


def declare_under(function: Any, limit: Concurrency) -> None:
    """Note another limit of a function that is to become a task."""
    setattr(function, _ATTRIBUTE, (*declared_under(function), limit))
