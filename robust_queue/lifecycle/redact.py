"""A stored call ──▶ what everybody may see of it. What is stored stays as it is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from inspect import Parameter, Signature, signature, unwrap
from itertools import repeat
from typing import Any

from robust_queue import registry
from robust_queue.arguments import plain_call
from robust_queue.configuration import current
from robust_queue.exceptions import DeserializationError, RedactionError
from robust_queue.redaction import hidden, hook_at, is_sensitive, redacted
from robust_queue.reports import report

from .signatures import signature_of

Call = tuple[list[Any], dict[str, Any]]

# What is raised by text that nobody can read, by signatures, and by hooks.
UNREDACTABLE = (
    DeserializationError,
    RecursionError,
    RedactionError,
    TypeError,
    ValueError,
)


def is_on() -> bool:
    """Is anything ever redacted?"""
    options = current()
    return bool(options.redact or options.redact_with)


def is_searchable(*, sees_contents: bool, sees_all: bool) -> bool:
    """May somebody who sees so much of arguments look for a text in them?

    A search would tell, guess by guess, what is redacted.
    """
    return sees_all or (sees_contents and not is_on())


def redacted_value(value: Any) -> Any:
    """A plain value, such as a result, as everybody may see it."""
    return redacted(value, current().redact)


def redacted_call(
    task_path: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Call:
    """The plain view of a call as everybody may see it.

    RedactionError if the hook fails: then nobody knows what of it is a secret.
    """
    keys = current().redact
    shown = list(_positional(task_path, args, keys)) if keys else list(args)
    return _by_hook(task_path, shown, dict(redacted(kwargs, keys)))


def redacted_signature(function: Callable[..., Any]) -> Signature:
    """What a task is called with, without the values that secrets have by default."""
    found, keys = signature_of(function), current().redact
    shown = [
        each.replace(default=_default(each, keys)) for each in found.parameters.values()
    ]
    return found.replace(parameters=shown)


def is_redacted(task_path: str, arguments: str) -> bool:
    """Does anything of stored arguments stay hidden from those who may not see it?"""
    if not is_on():
        return False
    try:
        args, kwargs = plain_call(arguments)
        return redacted_call(task_path, args, kwargs) != (args, kwargs)
    except UNREDACTABLE:
        return True


def _positional(
    task_path: str, args: Sequence[Any], keys: Sequence[str]
) -> Iterator[Any]:
    """Each by the name of its parameter. Without a name it might be anything."""
    task = registry.find(task_path) if args else None
    if task is None:
        yield from map(hidden, args)
        return
    names = _names(task.func, len(args) + task.takes_context)[task.takes_context :]
    for value, candidates in zip(args, names, strict=True):
        is_secret = any(is_sensitive(name, keys) for name in candidates)
        yield hidden(value) if is_secret else redacted(value, keys)


def _default(parameter: Parameter, keys: Sequence[str]) -> Any:
    value = parameter.default
    if value is Parameter.empty:
        return value
    if is_sensitive(parameter.name, keys):
        return hidden(value)
    shown = redacted(value, keys)
    return tuple(shown) if isinstance(value, tuple) else shown


def _names(function: Callable[..., Any], count: int) -> list[tuple[str, ...]]:
    """What each positional argument is called, also by what a decorator has wrapped."""
    signatures = (signature_of(function), signature(unwrap(function)))
    named = (_in_order(each) for each in signatures)
    places = [[next(names, "") for _ in range(count)] for names in named]
    return list(zip(*places, strict=True))


def _in_order(found: Signature) -> Iterator[str]:
    for parameter in found.parameters.values():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            yield from repeat(parameter.name)
        elif parameter.kind not in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD):
            yield parameter.name


def _by_hook(task_path: str, args: list[Any], kwargs: dict[str, Any]) -> Call:
    said = current().redact_with
    if said is None:
        return args, kwargs
    try:
        hook = hook_at(said) if isinstance(said, str) else said
        # It may well work in place, and others compare with what was there.
        return _judged(hook(task_path, deepcopy(args), deepcopy(kwargs)))
    except Exception as error:
        report(error, f"redacting arguments of {task_path}")
        raise RedactionError("redact_with has failed.") from error


def _judged(answer: Any) -> Call:
    args, kwargs = answer
    if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping):
        raise TypeError("redact_with must return a list of args and a dict of kwargs.")
    return list(args), dict(kwargs)
