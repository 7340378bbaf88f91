"""What of a task is called, and what is kept of what it returns or raises."""

from collections.abc import Callable
from functools import lru_cache
from inspect import iscoroutinefunction
from traceback import clear_frames
from typing import Any

from robust_queue.arguments import dump_result
from robust_queue.compat import AnyTask
from robust_queue.configuration import BackendOptions
from robust_queue.exceptions import Discard, SerializationError
from robust_queue.policies import Kind, Policy


def callable_of(task: AnyTask) -> Callable[..., Any]:
    """What to call. Django's own call() asks each time what kind of function it is."""
    return task.func if _is_plain(type(task).call, task.func) else task.call


@lru_cache(maxsize=1024)
def _is_plain(call: Callable[..., Any], func: Callable[..., Any]) -> bool:
    is_djangos = call.__module__ in {"django.tasks.base", "django_tasks.base"}
    return is_djangos and not iscoroutinefunction(func)


def as_told(error: BaseException, kind: Kind) -> BaseException:
    """The error as others are told of it: what was declared to be dropped is none."""
    if kind is not Kind.DISCARDED or isinstance(error, Discard):
        return error
    told = Discard(type(error).__qualname__)
    told.__cause__ = error
    return told


def make_room(error: BaseException) -> None:
    """What a task has used up is freed with its frames, which its error holds."""
    if isinstance(error, MemoryError):
        clear_frames(error.__traceback__)


def is_kept(policy: Policy, options: BackendOptions) -> bool:
    if policy.keep_result is None:
        return options.preserve_finished_jobs
    return bool(policy.keep_result)


def stored(returned: Any, options: BackendOptions) -> str:
    if returned is None:
        return "null"  # which most tasks return
    try:
        text = dump_result(returned)
    except SerializationError as error:
        # The contract asks for exactly this class.
        raise TypeError(str(error)) from None
    if len(text) > options.max_result_size:
        raise ValueError(
            f"The result takes {len(text):,} bytes, more than the "
            f"{options.max_result_size:,} allowed by MAX_RESULT_SIZE."
        )
    return text
