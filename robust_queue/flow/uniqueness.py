"""Uniqueness: of the same work, one at a time is enough."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from typing import Any, Literal, TypeAlias, get_args

from robust_queue.compat import InvalidTask

from . import keys
from .values import check_group, period

By: TypeAlias = str | tuple[str, ...] | Callable[..., Any]
Until: TypeAlias = Literal["finished", "started"]
OnConflict: TypeAlias = Literal["return", "discard", "replace", "raise"]

# What ``by`` says unless told otherwise: the whole call.
ARGUMENTS = "arguments"

_DIGEST = 32  # bytes: twice as many characters, as many as the column has


@dataclass(frozen=True, slots=True)
class Unique:
    """Of calls with the same key, only one is enqueued at a time.

    ``by`` tells which calls are the same: those with equal ``"arguments"``, with equal
    values of the parameters that are named, all of them (any other text), or those of
    which a function of the arguments returns the same. Where it returns None, the call
    is not unique. Keys of different tasks are apart unless both name the same
    ``group``.

    The key is taken until the job has ``"finished"``, in whatever way, or has
    ``"started"``; or for a ``period`` from the enqueue, whatever becomes of the job.
    """

    by: By = ARGUMENTS
    until: Until = "finished"
    period: timedelta | None = None
    on_conflict: OnConflict = "return"
    # None: the path of the task.
    group: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", _by(self.by))
        object.__setattr__(self, "period", period("Unique: period", self.period))
        _check_choice("until", self.until, Until)
        _check_choice("on_conflict", self.on_conflict, OnConflict)
        check_group("Unique", self.group)
        if self.period is not None and self.until != "finished":
            raise InvalidTask(
                "Unique: a period ends when it is over, and not when the job has "
                f"{self.until}: leave until= out, or period=."
            )

    @property
    def ends_at_start(self) -> bool:
        """Is the key free as soon as a worker begins the job?"""
        return self.until == "started"


def read(name: str, value: Any) -> Unique:
    """As a task declares it."""
    if not isinstance(value, Unique):
        raise InvalidTask(f"{name} must be a Unique, got {value!r}.")
    return value


def digest(group: str, basis: str) -> str:
    """The key of whatever tells calls of a group apart, short enough for its column."""
    text = f"{group}\n{basis}".encode(errors="surrogatepass")
    return blake2b(text, digest_size=_DIGEST).hexdigest()


def _by(value: Any) -> By:
    if not isinstance(value, list | tuple):
        keys.check("Unique: by", value)
        if value == "":
            raise InvalidTask("Unique: by must not be empty.")
        return value  # type: ignore[no-any-return]
    if not value or not all(each and isinstance(each, str) for each in value):
        raise InvalidTask(f"Unique: by must name parameters, got {value!r}.")
    return tuple(value)


def _check_choice(name: str, value: Any, choices: Any) -> None:
    known = get_args(choices)
    if value not in known:
        raise InvalidTask(f"Unique: {name} must be one of {known}, got {value!r}.")
