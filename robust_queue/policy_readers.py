"""Policies as they are declared: brought into form, or refused with a reason."""

from collections.abc import Mapping
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import Any, get_args

from .backoffs import LONGEST_DELAY, Backoff, duration, from_list
from .compat import InvalidTask
from .policies import Errors, Isolation, OnCrash

MOST_ATTEMPTS = 32_000  # what the column holds, with room for an operator's retries

_NOTHING = timedelta(0)


def checked(declared: Mapping[str, Any]) -> dict[str, Any]:
    """Policies as they are kept, or an InvalidTask that says what is wrong.

    None means that nothing is declared.
    """
    unknown = [name for name in declared if name not in _READERS]
    if unknown:
        raise InvalidTask(f"{unknown[0]} is not a policy of a task.")
    return {
        name: None if value is None else _READERS[name](name, value)
        for name, value in declared.items()
    }


def _attempts(name: str, value: Any) -> int:
    # Not isinstance: True is no count.
    if type(value) is not int or not 1 <= value <= MOST_ATTEMPTS:
        raise InvalidTask(
            f"{name} must be a whole number from 1 to {MOST_ATTEMPTS:,}, got {value!r}."
        )
    return value


def _backoff(name: str, value: Any) -> Backoff:
    if isinstance(value, list | tuple):
        try:
            return from_list(value)
        except ValueError as error:
            raise InvalidTask(f"{name}: {error}") from None
    if not callable(value) or iscoroutinefunction(value):
        raise InvalidTask(
            f"{name} must be a function of the exception and the attempt that returns "
            "a timedelta or None, such as exponential(), or a list of delays, got "
            f"{value!r}."
        )
    found: Backoff = value
    return found


def _errors(name: str, value: Any) -> Errors:
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(
        isinstance(each, type) and issubclass(each, BaseException) for each in found
    ):
        raise InvalidTask(f"{name} must be a tuple of exceptions, got {value!r}.")
    return found


def _time(name: str, value: Any) -> timedelta:
    try:
        found = duration(name, value)
    except ValueError as error:
        raise InvalidTask(str(error)) from None
    if not _NOTHING < found <= LONGEST_DELAY:
        raise InvalidTask(f"{name} must be longer than zero, got {value!r}.")
    return found


def _age(name: str, value: Any) -> timedelta:
    return _NOTHING if value in (0, _NOTHING) else _time(name, value)


def _one_of(*choices: str) -> Any:
    def read(name: str, value: Any) -> str:
        if value not in choices:
            words = " or ".join(repr(each) for each in choices)
            raise InvalidTask(f"{name} must be {words}, got {value!r}.")
        return str(value)

    return read


_READERS: dict[str, Any] = {
    "max_attempts": _attempts,
    "backoff": _backoff,
    "retry_on": _errors,
    "discard_on": _errors,
    "timeout": _time,
    "deadline": _time,
    "on_crash": _one_of(*get_args(OnCrash)),
    "isolation": _one_of(*get_args(Isolation)),
    "keep_result": _age,
    "keep_failure": _age,
}
