"""``external_task``: work that no function here performs, declared like a task."""

import inspect
import re
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, ClassVar, TypedDict, Unpack, overload

from . import registry
from .backoffs import Backoff, Delays
from .compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    InvalidTask,
    P,
    R,
)
from .declaration import POLICIES, RobustTask
from .exceptions import ExternalTaskError
from .flow import Concurrency, RateLimit, Unique
from .flow.rates import Rate
from .policies import OnCrash

_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,255}")

# What is declared of functions alone, and why not here.
_OF_FUNCTIONS = {
    "isolation": "where its jobs run is decided by the workers outside",
    "takes_context": "workers outside are told about the job with its arguments",
    "run_after": "a moment belongs to one call, use .using(run_after=...)",
}


class Policies(TypedDict, total=False):
    """What an external task may declare: all of ``@task`` that has a meaning."""

    enqueue_on_commit: bool | None
    max_attempts: int | None
    backoff: Backoff | Delays | None
    retry_on: type[BaseException] | Sequence[type[BaseException]] | None
    discard_on: type[BaseException] | Sequence[type[BaseException]] | None
    timeout: timedelta | float | None
    deadline: timedelta | float | None
    on_crash: OnCrash | None
    keep_result: timedelta | float | None
    keep_failure: timedelta | float | None
    concurrency: Concurrency | Sequence[Concurrency] | None
    unique: Unique | None
    rate_limit: RateLimit | Rate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalTask(RobustTask[P, R]):
    """A task that is performed by workers outside, over the HTTP API."""

    is_external: ClassVar[bool] = True

    def __post_init__(self) -> None:
        # A worker outside comes and goes: that it was interrupted says nothing about
        # the job.
        if self.on_crash is None:
            object.__setattr__(self, "on_crash", "retry")
        RobustTask.__post_init__(self)

    @property
    def module_path(self) -> str:
        """Its name: there is no module that has it."""
        return self.func.__name__

    def __reduce__(self) -> tuple[Any, ...]:
        # Its function cannot be imported by its name.
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        del values["func"]
        return _restored, (self.module_path, values)


def _restored(name: str, values: dict[str, Any]) -> ExternalTask[..., Any]:
    return ExternalTask(func=registry.resolve(name).func, **values)


@overload
def external_task(
    name: str,
    *,
    queue_name: str,
    signature: None = None,
    priority: int = ...,
    backend: str = ...,
    **policies: Unpack[Policies],
) -> ExternalTask[..., Any]: ...
@overload
def external_task(
    name: str,
    *,
    queue_name: str,
    signature: Callable[P, Coroutine[Any, Any, R]],
    priority: int = ...,
    backend: str = ...,
    **policies: Unpack[Policies],
) -> ExternalTask[P, R]: ...
@overload
def external_task(
    name: str,
    *,
    queue_name: str,
    signature: Callable[P, R],
    priority: int = ...,
    backend: str = ...,
    **policies: Unpack[Policies],
) -> ExternalTask[P, R]: ...
def external_task(
    name: str,
    *,
    queue_name: str,
    signature: Callable[..., Any] | None = None,
    priority: int = DEFAULT_TASK_PRIORITY,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    **policies: Any,
) -> Any:
    """Declare a task that workers outside perform; jobs name it as it is named here.

    Its queue is left to these workers: those of this project take nothing from it.
    Calls are checked against the parameters of ``signature``, a function that is never
    called; without one any arguments will do.
    """
    _check_name(name)
    _check_queue(name, queue_name)
    _refuse_unknown(name, policies)
    module = sys._getframe(1).f_globals.get("__name__", "?")
    return ExternalTask(
        func=_stand_in(name, module, signature),
        queue_name=queue_name,
        priority=priority,
        backend=backend,
        takes_context=False,
        run_after=None,
        **policies,
    )


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidTask(
            f"external_task: the name {name!r} must have 1 to 255 characters: letters "
            "and digits of ASCII, and any of '_', '.', ':', '/' and '-'."
        )


def _check_queue(name: str, queue_name: object) -> None:
    if not isinstance(queue_name, str) or not queue_name:
        raise InvalidTask(
            f"external_task {name!r}: queue_name must be the name of a queue, got "
            f"{queue_name!r}."
        )


def _refuse_unknown(name: str, policies: dict[str, Any]) -> None:
    for each in policies:
        if each in _OF_FUNCTIONS:
            raise InvalidTask(
                f"external_task {name!r} cannot declare {each}: {_OF_FUNCTIONS[each]}."
            )
        if each not in POLICIES:
            known = ", ".join(it for it in POLICIES if it not in _OF_FUNCTIONS)
            raise TypeError(
                f"external_task got an unknown keyword {each!r}. Known are: signature, "
                f"priority, backend, {known}."
            )


def _stand_in(
    name: str, module: str, signature: Callable[..., Any] | None
) -> Callable[..., Any]:
    """A function in the place of the one that is not here, with its parameters."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise ExternalTaskError(
            f"{name} is performed by workers outside, over the HTTP API. Nobody here "
            "can call it."
        )

    refuse.__module__, refuse.__name__, refuse.__qualname__ = module, name, name
    if signature is not None:
        _pretend(refuse, _checked(name, signature))
    return refuse


def _checked(name: str, signature: Callable[..., Any]) -> Callable[..., Any]:
    if not inspect.isfunction(signature):
        raise InvalidTask(
            f"external_task {name!r}: signature must be a function, got {signature!r}."
        )
    return signature


def _pretend(function: Any, signature: Callable[..., Any]) -> None:
    function.__doc__ = signature.__doc__
    function.__signature__ = inspect.signature(signature)
    function.__annotations__ = dict(signature.__annotations__)
    # Annotations that are text are looked up where they were written.
    function.__wrapped__ = signature
