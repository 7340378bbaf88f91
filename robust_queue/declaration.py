"""Declaring tasks: the class behind ``@task`` and Robust Queue's own decorator."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Literal,
    Protocol,
    Self,
    overload,
)

from django.utils import timezone

from . import flow, registry
from .backoffs import Backoff, Delays
from .compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
    AnyTask,
    P,
    R,
    Task,
    TypedContext,
    TypedTask,
    task_backends,
)
from .flow import Concurrency, RateLimit, Unique
from .flow.concurrency import declared_under
from .flow.rates import Rate
from .policies import NAMES, Errors, Isolation, OnCrash
from .policy_readers import checked


@dataclass(frozen=True, slots=True)
class Call:
    """A task with the arguments it is to be called with, for ``enqueue_all``."""

    task: AnyTask
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # An iterator would be used up by the first check that looks at it.
        object.__setattr__(self, "args", tuple(self.args))


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustTask(TypedTask[P, R]):
    """A task as Django knows it, plus the policies of Robust Queue."""

    # None: as the backend's ENQUEUE_ON_COMMIT says.
    enqueue_on_commit: bool | None = None
    # What None means is told by Policy: here, that the defaults of the queue hold.
    max_attempts: int | None = None
    backoff: Backoff | None = None
    retry_on: Errors | None = None
    discard_on: Errors | None = None
    timeout: timedelta | None = None
    deadline: timedelta | None = None
    on_crash: OnCrash | None = None
    isolation: Isolation | None = None
    keep_result: timedelta | None = None
    keep_failure: timedelta | None = None
    concurrency: tuple[Concurrency, ...] | None = None
    unique: Unique | None = None
    rate_limit: RateLimit | None = None

    from_backport: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.concurrency is None and (under := declared_under(self.func)):
            object.__setattr__(self, "concurrency", under)
        policies = checked({each: getattr(self, each) for each in NAMES})
        limits = flow.checked({each: getattr(self, each) for each in flow.NAMES})
        for name, value in (policies | limits).items():
            object.__setattr__(self, name, value)
        # A dataclass with slots is made twice, which breaks the short super().
        Task.__post_init__(self)
        registry.declare(self)

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | timedelta | None = None,
        backend: str | None = None,
        enqueue_on_commit: bool | None = None,
    ) -> Self:
        """A variation of this task. A timedelta counts from now."""
        if isinstance(run_after, timedelta):
            run_after = timezone.now() + run_after
        changes: dict[str, Any] = {
            "priority": priority,
            "queue_name": queue_name,
            "run_after": run_after,
            "backend": backend,
            "enqueue_on_commit": enqueue_on_commit,
        }
        given = {name: value for name, value in changes.items() if value is not None}
        return replace(self, **given)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """A call of this task to be enqueued together with others."""
        return Call(self, args, kwargs)

    if not TYPE_CHECKING:

        def __class_getitem__(cls, parameters: object) -> type["RobustTask"]:
            return cls


@dataclass(frozen=True, slots=True, kw_only=True)
class BackportTask(RobustTask[P, R]):
    """A task declared with ``django_tasks.task`` although Django has its own."""

    from_backport: ClassVar[bool] = True


POLICIES = tuple(
    field.name
    for field in fields(RobustTask)
    if field.name not in {inherited.name for inherited in fields(Task)}
)


class _Declare(Protocol):
    """``@task(...)``, waiting for its function. A coroutine gives its own result."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> RobustTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> RobustTask[P, R]: ...


class _DeclareWithContext(Protocol):
    """The same for ``takes_context=True``: callers do not pass the context."""

    @overload
    def __call__(
        self,
        function: Callable[
            Concatenate[TypedContext[Any, Any], P], Coroutine[Any, Any, R]
        ],
        /,
    ) -> RobustTask[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[TypedContext[Any, Any], P], R], /
    ) -> RobustTask[P, R]: ...


@overload
def task(function: Callable[P, Coroutine[Any, Any, R]], /) -> RobustTask[P, R]: ...
@overload
def task(function: Callable[P, R], /) -> RobustTask[P, R]: ...
@overload
def task(
    *,
    priority: int = ...,
    queue_name: str = ...,
    backend: str = ...,
    takes_context: Literal[False] = False,
    enqueue_on_commit: bool | None = None,
    max_attempts: int | None = None,
    backoff: Backoff | Delays | None = None,
    retry_on: type[BaseException] | Sequence[type[BaseException]] | None = None,
    discard_on: type[BaseException] | Sequence[type[BaseException]] | None = None,
    timeout: timedelta | float | None = None,
    deadline: timedelta | float | None = None,
    on_crash: OnCrash | None = None,
    isolation: Isolation | None = None,
    keep_result: timedelta | float | None = None,
    keep_failure: timedelta | float | None = None,
    concurrency: Concurrency | Sequence[Concurrency] | None = None,
    unique: Unique | None = None,
    rate_limit: RateLimit | Rate | None = None,
) -> _Declare: ...
@overload
def task(
    *,
    priority: int = ...,
    queue_name: str = ...,
    backend: str = ...,
    takes_context: Literal[True],
    enqueue_on_commit: bool | None = None,
    max_attempts: int | None = None,
    backoff: Backoff | Delays | None = None,
    retry_on: type[BaseException] | Sequence[type[BaseException]] | None = None,
    discard_on: type[BaseException] | Sequence[type[BaseException]] | None = None,
    timeout: timedelta | float | None = None,
    deadline: timedelta | float | None = None,
    on_crash: OnCrash | None = None,
    isolation: Isolation | None = None,
    keep_result: timedelta | float | None = None,
    keep_failure: timedelta | float | None = None,
    concurrency: Concurrency | Sequence[Concurrency] | None = None,
    unique: Unique | None = None,
    rate_limit: RateLimit | Rate | None = None,
) -> _DeclareWithContext: ...
def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    priority: int = DEFAULT_TASK_PRIORITY,
    queue_name: str = DEFAULT_TASK_QUEUE_NAME,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    takes_context: bool = False,
    **policies: Any,
) -> Any:
    """Declare a task; takes every policy, on every Django and under every backend.

    Django's own decorator does the same where it passes keywords on to the task
    class (Django ≥ 6.1 and django-tasks), provided the backend is ours. This one
    also works where it is not: the policies then have no effect.
    """
    _refuse_unknown(policies)

    def declare(function: Callable[..., Any]) -> AnyTask:
        task_class, accepted = _class_for(backend, policies)
        return task_class(
            func=function,
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            takes_context=takes_context,
            run_after=None,
            **accepted,
        )

    return declare if function is None else declare(function)


def _refuse_unknown(policies: dict[str, Any]) -> None:
    if "run_after" in policies:
        raise TypeError(
            "run_after cannot be declared with @task: a moment belongs to one call. "
            "Use .using(run_after=...) when enqueueing."
        )
    for name in policies:
        if name not in POLICIES:
            raise TypeError(f"@task got an unknown keyword {name!r}.{_advice(name)}")


def _advice(name: str) -> str:
    known = ["priority", "queue_name", "backend", "takes_context", *POLICIES]
    close = get_close_matches(name, known, n=1)
    return (
        f" Did you mean {close[0]!r}?" if close else f" Known are: {', '.join(known)}."
    )


def _class_for(
    backend: str, policies: dict[str, Any]
) -> tuple[type[AnyTask], dict[str, Any]]:
    """The class to build the task with, and the policies it understands."""
    wanted = task_backends[backend].task_class
    if issubclass(RobustTask, wanted):
        # Plain Task: ours is a Task too, and keeps its methods under any backend.
        return RobustTask, policies
    if issubclass(wanted, RobustTask):
        return wanted, policies
    return wanted, {}
