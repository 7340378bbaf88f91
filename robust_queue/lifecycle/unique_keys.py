"""A call of a unique task ──▶ the key that calls like it have in common."""

from collections.abc import Mapping
from inspect import BoundArguments
from typing import Any

from robust_queue.arguments import SerializationError, dump_call
from robust_queue.arguments.text import from_text, to_sorted_text, to_text
from robust_queue.compat import AnyTask, InvalidTask
from robust_queue.declaration import Call
from robust_queue.flow import keys
from robust_queue.flow.uniqueness import ARGUMENTS, Unique, digest

from .signatures import signature_of


def unique_key(unique: Unique, call: Call) -> str:
    """The key of a call; none if it is not unique."""
    try:
        basis = _basis(unique, call)
    except InvalidTask:
        raise
    except Exception as error:
        raise InvalidTask(
            f"{call.task.module_path}: the unique key of this call could not be found: "
            f"{type(error).__name__}: {error}"
        ) from error
    return digest(unique.group or call.task.module_path, basis) if basis else ""


def _basis(unique: Unique, call: Call) -> str:
    """Parameters as an object of JSON, values as an array: the two never meet."""
    by = unique.by
    if by == ARGUMENTS:
        return _text_of(_arguments(call))
    if isinstance(by, tuple):
        given = _arguments(call)
        return _text_of({name: _named(name, given, call) for name in by})
    if isinstance(by, str):
        _refuse_parameter(by, call.task)
    value = by(*call.args, **call.kwargs) if callable(by) else by
    return "" if value is None else to_text(_texts(value))


def _text_of(arguments: Mapping[str, Any]) -> str:
    """Arguments as they are stored, but in one order: dictionaries too have none."""
    return to_sorted_text(from_text(dump_call((), arguments)))


def _texts(value: Any) -> list[str]:
    if isinstance(value, set | frozenset):
        return sorted(map(keys.text_of, value))  # in another process in another order
    several = value if isinstance(value, list | tuple) else [value]
    return [keys.text_of(each) for each in several]


def _arguments(call: Call) -> dict[str, Any]:
    """What the parameters are worth, however they were passed, defaults included."""
    context = (None,) if call.task.takes_context else ()
    bound = signature_of(call.task.func).bind(*context, *call.args, **call.kwargs)
    given = set(bound.arguments)
    bound.apply_defaults()
    names = list(bound.arguments)[len(context) :]
    return {
        name: bound.arguments[name]
        for name in names
        if name in given or _can_be_stored(bound, name)
    }


def _can_be_stored(bound: BoundArguments, name: str) -> bool:
    # A default such as object(), which nobody can pass, tells no calls apart.
    try:
        dump_call((bound.arguments[name],), {})
    except SerializationError:
        return False
    return True


def _named(name: str, given: Mapping[str, Any], call: Call) -> Any:
    if name in given:
        return given[name]
    if name in signature_of(call.task.func).parameters:
        return None  # its default, which cannot be stored
    raise InvalidTask(
        f"{call.task.module_path}: Unique(by=...) names {name!r}, which is no "
        "parameter of the task."
    )


def _refuse_parameter(text: str, task: AnyTask) -> None:
    """A text is the same for every call, which is hardly meant by a parameter's name.

    Parentheses alone make no tuple, and all work but the first would be swallowed.
    """
    if text in signature_of(task.func).parameters:
        raise InvalidTask(
            f"{task.module_path}: Unique(by={text!r}) is the same for every call. To "
            f"tell calls apart by that parameter, write by=({text!r},)."
        )
