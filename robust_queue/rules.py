"""What an option of the settings accepts, and what to say when it does not.

The rule of a dataclass field stands in its annotation; the same rule judges the same
key of a plain dict. Problems are yielded, so that a check can report all of them.
"""

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from inspect import iscoroutinefunction
from typing import Annotated, Any, Literal, NamedTuple, Protocol, cast

from robust_queue.exceptions import ConfigurationError

Problems = Iterator[ConfigurationError]

LEAST_HEARTBEATS = 3
# Of threads, processes or coroutines: more is a slip of the hand.
MOST_AT_ONCE = 10_000


class UnknownOptionError(ConfigurationError):
    """A name that is no option, most often a misspelt one."""


class PriorityOrder(StrEnum):
    """Which of two priorities goes first."""

    SMALLEST_FIRST = "smallest_first"
    LARGEST_FIRST = "largest_first"

    def rank(self, priority: int) -> int:
        """Return the number as it sorts ascending, or from that the priority again."""
        return priority if self is PriorityOrder.SMALLEST_FIRST else -priority


class RunMode(StrEnum):
    """Where workers, dispatchers and the scheduler live."""

    FORK = "fork"
    """Each in a process of its own."""

    ASYNC = "async"
    """All as threads of one process."""


class Rule(NamedTuple):
    """What one option accepts, and the form in which its value is kept."""

    demand: str
    accepts: Callable[[Any], bool]
    convert: Callable[[Any], Any] = lambda value: value

    def read(self, value: Any) -> Any:
        result = self.convert(value)
        if not self.accepts(result):
            raise ValueError(self.demand)
        return result

    def problems(self, path: str, value: Any) -> Problems:
        try:
            self.read(value)
        except (ValueError, TypeError, OverflowError):
            yield senseless(path, value, self.demand)


class Members(NamedTuple):
    """The rule of a list of dicts or dataclasses of one kind; None stays None."""

    kind: type

    def read(self, value: Any) -> tuple[Any, ...] | None:
        return None if value is None else tuple(map(self._made, value))

    def _made(self, form: Any) -> Any:
        return form if isinstance(form, self.kind) else self.kind(**form)

    def problems(self, path: str, value: Any) -> Problems:
        if not isinstance(value, list | tuple | None):
            yield senseless(path, value, "a list, or None for the defaults")
            return
        for index, form in enumerate(value or ()):
            yield from form_problems(f"{path}[{index}]", form, self.kind)


class Named(NamedTuple):
    """The rule of a dict of names, each with a dict or dataclass of one kind."""

    kind: type

    def read(self, value: Any) -> dict[str, Any]:
        made = Members(self.kind).read(tuple(value.values())) or ()
        return dict(zip(value, made, strict=True))

    def problems(self, path: str, value: Any) -> Problems:
        if not isinstance(value, Mapping):
            yield senseless(path, value, "a dict of names and what holds for each")
            return
        for name, form in value.items():
            where = f"{path}[{name!r}]"
            if not _is_name(name) or "*" in name:
                yield senseless(where, name, "written under the full name of a queue")
            yield from form_problems(where, form, self.kind)


class Ruling(Protocol):
    """What reads the value of an option, and tells what is wrong with it."""

    def read(self, value: Any) -> Any: ...
    def problems(self, path: str, value: Any) -> Problems: ...


Rules = Mapping[str, Ruling]


@cache
def rules_of(kind: Hashable) -> Rules:
    """Return the rules of a dataclass by field; a field without one is private."""
    annotated = {each.name: each.type for each in fields(cast(Any, kind))}
    found = {name: getattr(it, "__metadata__", ()) for name, it in annotated.items()}
    return {name: metadata[0] for name, metadata in found.items() if metadata}


def normalise(options: Any) -> None:
    """Refuse a new dataclass that makes no sense; else bring its values into form."""
    kind: Any = type(options)
    for name, rule in rules_of(kind).items():
        value = getattr(options, name)
        raise_first(rule.problems(f"{kind.__name__}.{name}", value))
        object.__setattr__(options, name, rule.read(value))


def form_problems(path: str, form: Any, kind: type) -> Problems:
    """Yield what is wrong with a dict; a dataclass has refused nonsense already."""
    if isinstance(form, Mapping):
        yield from dict_problems(path, form, rules_of(kind))
    elif not isinstance(form, kind):
        yield senseless(path, form, f"a dict or a {kind.__name__}")


def dict_problems(path: str, form: Any, rules: Rules) -> Problems:
    """Yield what is wrong with a dict whose keys have these rules."""
    if not isinstance(form, Mapping):
        yield senseless(path, form, "a dict")
        return
    for name, value in form.items():
        where = f"{path}[{name!r}]"
        if name in rules:
            yield from rules[name].problems(where, value)
        else:
            yield unknown(where, name, rules)


def silence_problems(
    path: str, threshold: timedelta, *, heartbeat: timedelta
) -> Problems:
    """Yield what is wrong with a silence after which a process is taken for dead.

    A process trusts itself for less than that, and a heartbeat may come late.
    """
    least = LEAST_HEARTBEATS * heartbeat
    if threshold < least:
        yield ConfigurationError(
            path,
            f"is {threshold}, less than {LEAST_HEARTBEATS} times "
            f"process_heartbeat_interval, {heartbeat}: processes that are well would "
            "be taken for dead.",
            f"Allow for at least {least}, or shorten process_heartbeat_interval.",
        )


def raise_first(problems: Iterable[ConfigurationError]) -> None:
    """Raise the first problem, if there is one."""
    for problem in problems:
        raise problem


def senseless(path: str, value: Any, demand: str) -> ConfigurationError:
    """What to say of a value that an option does not accept."""
    return ConfigurationError(path, f"is {value!r}.", f"It must be {demand}.")


def unknown(path: str, name: Any, known: Iterable[str]) -> UnknownOptionError:
    """What to say of a name that is no option."""
    spellings = {option.lower(): option for option in known}
    close = get_close_matches(str(name).lower(), spellings, n=1)
    guess = "".join(f"Did you mean {spellings[match]!r}? " for match in close)
    choice = f"The options are {', '.join(spellings.values())}."
    return UnknownOptionError(path, "is not an option.", guess + choice)


def _duration(value: Any) -> Any:
    # Not isinstance: True is no number of seconds.
    return timedelta(seconds=value) if type(value) in (int, float) else value


def _listed(value: Any) -> tuple[Any, ...]:
    if isinstance(value, str):
        return (value,)
    # A set has no order, and the order of queues has a meaning.
    return tuple(value) if isinstance(value, list | tuple) else (None,)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _are_names(values: Sequence[Any]) -> bool:
    return all(map(_is_name, values))


def _are_some_names(values: Sequence[Any]) -> bool:
    return bool(values) and _are_names(values)


def _are_modules(values: Sequence[Any]) -> bool:
    parts = (part for value in values for part in value.split("."))
    return _are_names(values) and all(part.isidentifier() for part in parts)


def _is_handler(value: Any) -> bool:
    if isinstance(value, str):
        return "." in value and _are_modules([value])
    return callable(value) and not is_coroutine_function(value)


def _is_partitioner(value: Any) -> bool:
    if isinstance(value, str):
        return _are_modules([value])
    return callable(value) and not is_coroutine_function(value)


def is_coroutine_function(value: Any) -> bool:
    """Would a call of this do nothing until somebody awaits it?"""
    call = getattr(type(value), "__call__", None)  # noqa: B004 (its own, if it has one)
    return iscoroutinefunction(value) or iscoroutinefunction(call)


def _or_none(rule: Rule) -> Rule:
    demand, accepts, convert = rule
    return Rule(
        f"{demand}, or None",
        lambda value: value is None or accepts(value),
        lambda value: None if value is None else convert(value),
    )


_ZERO = timedelta(0)
_TIME = "a timedelta or a number of seconds"
_AGE = Rule(f"{_TIME}, not negative", lambda age: age >= _ZERO, _duration)
_INTERVAL = Rule(f"{_TIME}, longer than zero", lambda time: time > _ZERO, _duration)
_CREW = Rule(
    f"a whole number from 1 to {MOST_AT_ONCE:,}",
    lambda n: type(n) is int and 0 < n <= MOST_AT_ONCE,
)
_COUNT = Rule("a whole number of at least 1", lambda n: type(n) is int and n > 0)
_BYTES = Rule("a whole number of bytes, at least 1", lambda n: type(n) is int and n > 0)
_CREW_OR_NONE = Rule(
    f"a whole number from 0 to {MOST_AT_ONCE:,}",
    lambda n: type(n) is int and 0 <= n <= MOST_AT_ONCE,
)
_ISOLATION = Rule("'thread' or 'process'", lambda how: how in ("thread", "process"))
_FLAG = Rule("True or False", lambda flag: type(flag) is bool)
_ALIAS = Rule("an alias of DATABASES", _is_name)
_ALIASES = Rule("a list of aliases of DATABASES", _are_names, _listed)
_QUEUES = Rule("a list of at least one queue name", _are_some_names, _listed)
_MODULES = Rule("a list of dotted module names", _are_modules, _listed)
_ORDER = Rule("'smallest_first' or 'largest_first'", bool, PriorityOrder)
_HANDLER = Rule("a function that takes an exception, its dotted path", _is_handler)
_PARTITION_BY = Rule(
    "the name of a parameter, a function of (task, args, kwargs), its dotted path",
    _is_partitioner,
)
_MODE = Rule("'fork' or 'async'", bool, RunMode)
_FILE = Rule("the path of a file", _is_name, os.fspath)

Age = Annotated[timedelta, _AGE]
AgeOrNever = Annotated[timedelta | None, _or_none(_AGE)]
Interval = Annotated[timedelta, _INTERVAL]
IntervalOrNone = Annotated[timedelta | None, _or_none(_INTERVAL)]
Count = Annotated[int, _COUNT]
CountOrNone = Annotated[int | None, _or_none(_COUNT)]
BytesOrNone = Annotated[int | None, _or_none(_BYTES)]
Crew = Annotated[int, _CREW]
CrewOrNone = Annotated[int, _CREW_OR_NONE]
CrewOrDefault = Annotated[int | None, _or_none(_CREW_OR_NONE)]
Isolation = Annotated[Literal["thread", "process"], _ISOLATION]
Flag = Annotated[bool, _FLAG]
Database = Annotated[str | None, _or_none(_ALIAS)]
Databases = Annotated[Sequence[str], _ALIASES]
Queues = Annotated[Sequence[str], _QUEUES]
Modules = Annotated[Sequence[str], _MODULES]
Order = Annotated[PriorityOrder, _ORDER]
Handler = Annotated[Callable[[BaseException], object] | str | None, _or_none(_HANDLER)]
PartitionBy = Annotated[Callable[..., Any] | str | None, _or_none(_PARTITION_BY)]
Mode = Annotated[RunMode, _MODE]
File = Annotated[str | None, _or_none(_FILE)]
