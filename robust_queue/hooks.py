"""Lifecycle hooks: functions to call when a process starts or stops, and the like.

Each decorator here is a public name of the package::

    @robust_queue.on_worker_start
    def warm_up() -> None: ...

A hook takes no argument, or one: what the signal tells of. It is called in the process
itself, in the order of registration; one that raises is reported and harms nothing.
"""

from collections.abc import Callable, Hashable
from functools import wraps
from inspect import isfunction, signature, unwrap
from typing import Any, TypeVar

from django.dispatch import Signal

from robust_queue.rules import is_coroutine_function
from robust_queue.signals import (
    process_exited,
    process_replaced,
    process_started,
    process_stopping,
    queue_paused,
    queue_resumed,
)

Function = TypeVar("Function", bound=Callable[..., object])


class Hook:
    """A decorator. It gives back the function as it was."""

    def __init__(
        self, name: str, signal: Signal, *, fact: str, kind: str | None = None
    ) -> None:
        self._name = name
        self._signal = signal
        self._fact = fact
        self._kind = kind

    def __call__(self, function: Function) -> Function:
        """Call this function from now on; once, however often it is registered."""
        self._refuse_nonsense(function)
        is_curious = _takes(function, 1)
        if not is_curious and not _takes(function, 0):
            raise TypeError(
                f"{self} calls a function without arguments, or with one; "
                f"{_shown(function)} asks for others."
            )

        @wraps(function)
        def receive(**facts: Any) -> None:
            fact = facts[self._fact]
            if self._kind is None or fact.kind == self._kind:
                function(*([fact] if is_curious else []))

        # Or Django would judge the receiver by the signature of the function.
        del receive.__wrapped__
        # Built-in functions have none, and exception trackers ask for it.
        receive.__module__ = receive.__module__ or __name__
        identity = (self._name, _identity(function))
        # The latest one counts, where a module was imported again.
        self._signal.disconnect(dispatch_uid=identity)
        self._signal.connect(receive, weak=False, dispatch_uid=identity)
        return function

    def __str__(self) -> str:
        return f"@robust_queue.{self._name}"

    __repr__ = __str__

    def _refuse_nonsense(self, function: object) -> None:
        if not callable(function):
            raise TypeError(f"{self} takes a function, not {function!r}.")
        if is_coroutine_function(function):
            raise TypeError(
                f"{self} takes a plain function: {_shown(function)} is a coroutine "
                "function, and nobody would await it."
            )


def _takes(function: Callable[..., object], count: int) -> bool:
    try:
        signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # written in C, and does not tell
        return count == 1
    return True


def _identity(function: Callable[..., object]) -> Hashable:
    """The same for a function and for itself after its module was imported again."""
    if not isfunction(function) or "<" in function.__qualname__:
        return function
    # Several may have one name, such as "_".
    code = getattr(unwrap(function), "__code__", None)
    line = getattr(code, "co_firstlineno", None)
    return function.__module__, function.__qualname__, line


def _shown(function: object) -> str:
    return getattr(function, "__qualname__", repr(function))


def _of_process(name: str, signal: Signal, kind: str | None) -> Hook:
    return Hook(name, signal, fact="process", kind=kind)


on_start = _of_process("on_start", process_started, "Supervisor")
on_stop = _of_process("on_stop", process_stopping, "Supervisor")
on_exit = _of_process("on_exit", process_exited, "Supervisor")
on_worker_start = _of_process("on_worker_start", process_started, "Worker")
on_worker_stop = _of_process("on_worker_stop", process_stopping, "Worker")
on_worker_exit = _of_process("on_worker_exit", process_exited, "Worker")
on_dispatcher_start = _of_process("on_dispatcher_start", process_started, "Dispatcher")
on_dispatcher_stop = _of_process("on_dispatcher_stop", process_stopping, "Dispatcher")
on_dispatcher_exit = _of_process("on_dispatcher_exit", process_exited, "Dispatcher")
on_scheduler_start = _of_process("on_scheduler_start", process_started, "Scheduler")
on_scheduler_stop = _of_process("on_scheduler_stop", process_stopping, "Scheduler")
on_scheduler_exit = _of_process("on_scheduler_exit", process_exited, "Scheduler")
on_process_replaced = _of_process("on_process_replaced", process_replaced, None)
on_queue_paused = Hook("on_queue_paused", queue_paused, fact="queue_name")
on_queue_resumed = Hook("on_queue_resumed", queue_resumed, fact="queue_name")
