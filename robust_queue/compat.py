"""The one place that knows which task framework is in use.

Django brings ``django.tasks`` from version 6.0 on; before that the backport
``django_tasks`` defines the same contract. Everything else in the package
imports the contract from here and never mixes the two.
"""

import logging
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeGuard, TypeVar

import django

if TYPE_CHECKING or django.VERSION >= (6, 0):
    from django.tasks import signals, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_PRIORITY,
        DEFAULT_TASK_QUEUE_NAME,
        Task,
        TaskContext,
        TaskError,
        TaskResult,
        TaskResultStatus,
    )
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
else:
    from django_tasks import signals, task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_PRIORITY,
        DEFAULT_TASK_QUEUE_NAME,
        Task,
        TaskContext,
        TaskError,
        TaskResult,
        TaskResultStatus,
    )

    try:
        from django_tasks.exceptions import InvalidTask
    except ImportError:
        from django_tasks.exceptions import InvalidTaskError as InvalidTask
    from django_tasks.exceptions import TaskResultDoesNotExist

# To which the framework in use writes about tasks.
task_logger = logging.getLogger(signals.__name__.removesuffix(".signals"))

P = ParamSpec("P")
R = TypeVar("R")

# Django's classes are generic to type checkers only.
if TYPE_CHECKING:
    TypedTask = Task
    TypedContext = TaskContext
    AnyTask: TypeAlias = Task[..., Any]
    AnyResult: TypeAlias = TaskResult[..., Any]
else:
    AnyTask = Task
    AnyResult = TaskResult

    class TypedTask:
        """``TypedTask[P, R]`` is Task."""

        def __class_getitem__(cls, parameters: object) -> type[Task]:
            return Task

    class TypedContext:
        """``TypedContext[P, R]`` is TaskContext."""

        def __class_getitem__(cls, parameters: object) -> type[TaskContext]:
            return TaskContext


def is_task(value: object) -> TypeGuard[AnyTask]:
    """Is this a task of either framework? They share nothing but their shape."""
    backport = sys.modules.get("django_tasks.base")
    return isinstance(value, Task if backport is None else (Task, backport.Task))


def signal_modules(*, for_backport: bool) -> Iterator[Any]:
    """Where to announce a task: also the backport's, if it was declared there."""
    yield signals
    if for_backport and "django_tasks.signals" in sys.modules:
        yield sys.modules["django_tasks.signals"]


def context_class(task: AnyTask) -> type[Any]:
    """The class of the context given to a task: of the framework that declared it."""
    if getattr(task, "from_backport", False):
        backported: type[Any] = sys.modules["django_tasks"].TaskContext
        return backported
    return TaskContext


def belongs_to_backport(backend: BaseTaskBackend) -> bool:
    """Was this instance made by ``django_tasks`` while ``django.tasks`` rules?

    A project on Django ≥ 6.0 may still declare tasks with ``django_tasks.task``.
    Its handler then holds an instance of its own of the same backend class.
    """
    backport = sys.modules.get("django_tasks")
    if backport is None or django.VERSION < (6, 0):
        return False
    held = getattr(backport.task_backends._connections, backend.alias, None)
    return held is backend


__all__ = [
    "DEFAULT_TASK_BACKEND_ALIAS",
    "DEFAULT_TASK_PRIORITY",
    "DEFAULT_TASK_QUEUE_NAME",
    "AnyResult",
    "AnyTask",
    "BaseTaskBackend",
    "InvalidTask",
    "P",
    "R",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultStatus",
    "TypedContext",
    "TypedTask",
    "belongs_to_backport",
    "context_class",
    "is_task",
    "signal_modules",
    "signals",
    "task_backends",
    "task_logger",
]
