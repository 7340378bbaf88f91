"""Partitions: whose job it is, where several share a queue and take turns."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter, signature
from typing import Any, TypeAlias

from django.utils.module_loading import import_string

from robust_queue.compat import AnyTask, InvalidTask
from robust_queue.rules import is_coroutine_function

from . import keys

Partitioner: TypeAlias = Callable[[AnyTask, Sequence[Any], Mapping[str, Any]], Any]

LENGTH = 128
# Of jobs of a partitioned queue that are nobody's: one partition of their own. Not an
# empty text, which is what jobs have that were enqueued before there were partitions.
NOBODY = "(none)"


def key_of(
    by: Partitioner | str, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    """The partition of a call: the value of a parameter, or what a function returns."""
    try:
        value = _value(by, task, args, kwargs)
        # MariaDB does not tell texts apart that differ in spaces at the end.
        text = "" if value is None else keys.text_of(value).strip()
    except Exception as error:
        raise InvalidTask(
            f"{task.module_path}: the partition of this call in queue "
            f"{task.queue_name!r} could not be found by partition_by={by!r}: "
            f"{type(error).__name__}: {error}"
        ) from error
    return keys.fitting(text, LENGTH) or NOBODY


def function_at(path: str) -> Partitioner:
    """The function that a dotted path names."""
    found = import_string(path)
    if not callable(found) or is_coroutine_function(found):
        raise TypeError(f"{path} is no function that could be called here.")
    function: Partitioner = found
    return function


def _value(
    by: Partitioner | str, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    if not isinstance(by, str):
        return by(task, args, kwargs)
    if "." in by:
        return function_at(by)(task, args, kwargs)
    if by in kwargs:
        return kwargs[by]
    place, default = _parameter(task.func, by)
    place -= task.takes_context
    return args[place] if 0 <= place < len(args) else default


@lru_cache(maxsize=1024)
def _parameter(function: Callable[..., Any], name: str) -> tuple[int, Any]:
    """Where a parameter stands, or -1 if it has no place, and what it is by default."""
    parameters = signature(function, follow_wrapped=False).parameters
    found = parameters.get(name)
    if found is None or found.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        return -1, None
    default = None if found.default is Parameter.empty else found.default
    if found.kind is Parameter.KEYWORD_ONLY:
        return -1, default
    return list(parameters).index(name), default
