"""Task arguments and return values as JSON text, and back, without loss.

The text is pure ASCII, so that every database stores and returns it byte for byte.
What JSON cannot say is a *tag*: an object with the reserved key ``"$type"``. A
dictionary that has this key, or keys that are not text, is itself written as a tag.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from robust_queue.arguments.classes import storable
from robust_queue.arguments.decoding import decode
from robust_queue.arguments.display import plain_of, view
from robust_queue.arguments.encoding import DEPTH, encode
from robust_queue.arguments.misfits import MisfitError
from robust_queue.arguments.text import TAG, Json, from_text, to_text
from robust_queue.exceptions import (
    DeserializationError,
    PayloadTooLargeError,
    SerializationError,
)

__all__ = [
    "DeserializationError",
    "SerializationError",
    "check_size",
    "dump_call",
    "dump_result",
    "load_call",
    "load_result",
    "may_query",
    "plain",
    "plain_call",
    "plain_result",
    "storable",
]

Call: TypeAlias = tuple[list[Any], dict[str, Any]]
Convert: TypeAlias = Callable[[Json], Any]
T = TypeVar("T")


def dump_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The text of a call, or SerializationError naming the argument at fault."""
    encoded = _written("args", encode, [*args], DEPTH + 1)
    named = _written("kwargs", _encode_kwargs, kwargs) if kwargs else {}
    return to_text({"args": encoded, "kwargs": named})


def check_size(text: str, limit: int, alias: str) -> None:
    """Refuse arguments that take more room than the alias of TASKS allows."""
    if len(text) > limit:
        raise PayloadTooLargeError(
            f"The arguments take {len(text):,} bytes, more than the {limit:,} "
            "allowed. Pass a reference to the data (a model, a key, a file name), or "
            f"raise TASKS[{alias!r}]['OPTIONS']['MAX_ARGUMENTS_SIZE']."
        )


def load_call(text: str) -> Call:
    """The call written by dump_call; models are read from their database."""
    return _read(text, _call, decode)


def dump_result(value: Any) -> str:
    """The text of a return value, or SerializationError naming the part at fault."""
    return to_text(_written("return value", encode, value, DEPTH))


def load_result(text: str) -> Any:
    """The value written by dump_result; models are read from their database."""
    return _read(text, _result, decode)


def may_query(text: str) -> bool:
    """Could load_call() of this text have to do with the database?"""
    return TAG in text


def plain(value: Any) -> Any:
    """A live value as JSON shows it: what a TaskResult has in args and kwargs."""
    return _written("value", plain_of, value)


def plain_call(text: str) -> Call:
    """The plain view of a stored call; touches no database and no class."""
    return _read(text, _call, view)


def plain_result(text: str) -> Any:
    """The plain view of a stored return value; touches no database and no class."""
    return _read(text, _result, view)


def _written(root: str, convert: Callable[..., T], *inputs: Any) -> T:
    try:
        return convert(*inputs)
    except MisfitError as misfit:
        raise SerializationError(misfit.located(root)) from misfit.__cause__


def _encode_kwargs(kwargs: Mapping[str, Any]) -> Json:
    for name in kwargs:
        if not isinstance(name, str):
            raise MisfitError(f"names of arguments must be text, not {name!r}.")
    return encode({**kwargs}, DEPTH + 1)


def _read(text: str, build: Callable[[Json, Convert], T], convert: Convert) -> T:
    try:
        # Without tags JSON has said it all, and most texts have none.
        return build(from_text(text), convert if TAG in text else _itself)
    except MisfitError as misfit:
        raise DeserializationError(misfit.located("")) from misfit.__cause__
    except RecursionError as cause:
        raise DeserializationError("The stored text is nested too deeply.") from cause


def _itself(node: Json) -> Json:
    return node


def _call(node: Json, convert: Convert) -> Call:
    if type(node) is not dict or node.keys() != {"args", "kwargs"}:
        raise MisfitError("The stored text is not a call with args and kwargs.")
    args: Any = node["args"]
    kwargs: Any = node["kwargs"]
    if convert is not _itself:
        args = _located("args", convert, args)
        kwargs = _located("kwargs", convert, kwargs)
    if type(args) is not list or not _are_named(kwargs):
        raise MisfitError("The stored call has no list of args or names of kwargs.")
    return args, kwargs


def _are_named(kwargs: Any) -> bool:
    return type(kwargs) is dict and (
        not kwargs or all(isinstance(name, str) for name in kwargs)
    )


def _result(node: Json, convert: Convert) -> Any:
    return _located("return value", convert, node)


def _located(root: str, convert: Convert, node: Json) -> Any:
    try:
        return convert(node)
    except MisfitError as misfit:
        misfit.inside(root)
        raise
