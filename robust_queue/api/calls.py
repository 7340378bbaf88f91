"""Calls that come as JSON ──▶ arguments of the types that a task declares.

Only tasks that are declared here can be called, and nothing is imported for a request.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, time, timezone
from functools import lru_cache
from inspect import Parameter
from itertools import repeat
from types import SimpleNamespace
from typing import (
    Any,
    ParamSpecArgs,
    ParamSpecKwargs,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import TypeAdapter, ValidationError

from robust_queue import registry
from robust_queue.compat import AnyTask
from robust_queue.lifecycle.signatures import signature_of

from .importing import imports
from .problems import LONGEST_PLACE, MOST_ERRORS, Problem, not_found

Call = tuple[list[Any], dict[str, Any]]
# What judges the arguments for a parameter: a text says why there can be none.
Judge = TypeAdapter[Any] | str

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def task_at(path: str) -> AnyTask:
    """The declared task of that name; a problem if there is none."""
    task = registry.find(path)
    if task is None:
        raise not_found("No such task is declared here.", "unknown_task")
    return task


def checked_call(path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
    """What a task is to be called with; a problem if that does not fit.

    What comes by its name stays so: keys, limits and redaction go by names.
    """
    task = task_at(path)
    _check_signature(task, args, kwargs)
    judges = _judges(getattr(task.func, "__wrapped__", task.func))
    errors: list[dict[str, str]] = []
    placed = [
        _fitting(judges.get(name), value, f"args.{at}", errors)
        for at, (name, value) in enumerate(zip(_names(task), args, strict=False))
    ]
    named = {
        name: _fitting(_judge_of(task, judges, name), value, f"kwargs.{name}", errors)
        for name, value in kwargs.items()
    }
    if errors:
        detail = "The arguments do not fit the parameters of the task."
        raise Problem(422, "bad_arguments", detail, errors=errors[:MOST_ERRORS])
    return placed, named


# ── Which parameter an argument is for ─────────────────────────────────────────


def _check_signature(
    task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    context = [None] * task.takes_context
    try:
        signature_of(task.func).bind(*context, *args, **kwargs)
    except TypeError as error:
        detail = f"The task cannot be called like that: {error}."
        raise Problem(422, "bad_arguments", detail) from None


def _names(task: AnyTask) -> Iterator[str]:
    """The parameters of positional arguments, without the context.

    The one that takes all others comes again and again.
    """
    parameters = [*signature_of(task.func).parameters.values()]
    for each in parameters[task.takes_context :]:
        if each.kind is Parameter.VAR_POSITIONAL:
            yield from repeat(each.name)
        elif each.kind in _POSITIONAL:
            yield each.name


def _judge_of(task: AnyTask, judges: Mapping[str, Judge], name: str) -> Judge | None:
    """What judges an argument of that name: its parameter, or that of all others."""
    if name in judges:
        return judges[name]
    parameters = signature_of(task.func).parameters
    if name in parameters:
        return None
    kinds = {each.kind: each.name for each in parameters.values()}
    return judges.get(kinds.get(Parameter.VAR_KEYWORD, ""))


# ── What fits it ───────────────────────────────────────────────────────────────


def _fitting(
    judge: Judge | None, value: Any, where: str, errors: list[dict[str, str]]
) -> Any:
    if judge is None:
        return value
    try:
        return _settled(_judged(judge, value))
    except ValidationError as refusal:
        for each in refusal.errors(include_input=False, include_url=False):
            place = ".".join(map(str, (where, *each["loc"])))
            errors.append({"where": place[:LONGEST_PLACE], "problem": each["msg"]})
    except TypeError as refusal:
        errors.append({"where": where[:LONGEST_PLACE], "problem": str(refusal)})
    except Exception as refusal:  # of a class of the project, which may raise anything
        problem = f"refused by its type, with {type(refusal).__name__}"
        errors.append({"where": where[:LONGEST_PLACE], "problem": problem})
    return value


def _judged(judge: Judge, value: Any) -> Any:
    if isinstance(judge, str):
        raise TypeError(judge)
    # Strictly, and as JSON: a text may be a moment, but not a number.
    return judge.validate_json(json.dumps(value), strict=True)


def _settled(value: Any) -> Any:
    """With moments in time zones that can be stored; pydantic has its own."""
    match value:
        case datetime() | time() if value.tzinfo is not None:
            offset = value.utcoffset()
            return value.replace(tzinfo=timezone(offset) if offset else UTC)
        case tuple() if hasattr(value, "_make"):
            return value._make(map(_settled, value))
        case list() | tuple() | set() | frozenset():
            return type(value)(map(_settled, value))
        case dict():
            return {key: _settled(each) for key, each in value.items()}
    return value


@lru_cache(maxsize=1024)
def _judges(function: Callable[..., Any]) -> Mapping[str, Judge]:
    """By parameter. One that nobody can read, or that has no type, takes anything."""
    names = getattr(function, "__annotations__", {})
    hints = {name: hint for name in names for hint in _hint(function, name)}
    judges = {name: _judge(hint) for name, hint in hints.items() if not _is_open(hint)}
    for hint in hints.values():
        if get_origin(hint) is Unpack:
            (named,) = get_args(hint)
            judges |= {name: _judge(it) for name, it in get_type_hints(named).items()}
    return judges


def _hint(function: Callable[..., Any], name: str) -> Iterator[Any]:
    """What is said of a parameter, by itself: others may name what is not there."""
    alone: Any = SimpleNamespace(__annotations__={name: function.__annotations__[name]})
    scope = getattr(function, "__globals__", {})
    # It may be any text, and names may be there for type checkers only.
    with suppress(Exception):
        yield get_type_hints(alone, scope, include_extras=True)[name]


def _is_open(hint: Any) -> bool:
    is_of_others = isinstance(hint, TypeVar | ParamSpecArgs | ParamSpecKwargs)
    return hint is Any or is_of_others or get_origin(hint) is Unpack


def _judge(hint: Any) -> Judge:
    try:
        judge = TypeAdapter(hint)
        return "Nothing is imported for a request." if imports(judge) else judge
    except Exception:  # whatever pydantic makes of somebody's types
        if type(None) in get_args(hint):
            return TypeAdapter(None)
        return "JSON has no value of this type."
