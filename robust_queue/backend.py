"""The task backend: Django's contract on one side, the lifecycle on the other.

Instances are made while apps are still loading, one per thread, so they keep no state
and models are imported only when a job is written or read.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from asgiref.sync import sync_to_async
from django.core.checks import CheckMessage
from django.db import router

from . import checks
from .compat import (
    AnyResult,
    AnyTask,
    BaseTaskBackend,
    InvalidTask,
    P,
    R,
    Task,
    TaskResult,
    belongs_to_backport,
    task_backends,
)
from .configuration import BackendOptions, backend_options
from .declaration import BackportTask, Call, RobustTask

if TYPE_CHECKING:
    from .lifecycle.enqueue import Prepared


class _TaskClass:
    """The class of declared tasks: it remembers which framework declared them."""

    def __get__(
        self, backend: "RobustQueueBackend | None", owner: type["RobustQueueBackend"]
    ) -> type[RobustTask[..., Any]]:
        if backend is not None and belongs_to_backport(backend):
            return BackportTask
        return RobustTask


class RobustQueueBackend(BaseTaskBackend):
    """Keeps tasks in the application's database."""

    task_class = _TaskClass()

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def enqueue(
        self, task: "Task[P, R]", args: Sequence[Any], kwargs: dict[str, Any]
    ) -> "TaskResult[P, R]":
        """Store one call of a task. An enqueue that raises has stored nothing."""
        (result,) = self.enqueue_all([Call(task, args, kwargs)])
        return cast("TaskResult[P, R]", result)

    def enqueue_all(self, calls: Iterable[Call]) -> list[AnyResult]:
        """Store many calls with one statement per table; results in the same order."""
        from .lifecycle.enqueue import write  # noqa: PLC0415

        prepared = self.prepare_all(calls)
        write(prepared)
        return [each.result for each in prepared]

    def prepare_all(self, calls: Iterable[Call]) -> "list[Prepared]":
        """Check calls and turn them into jobs, without storing any."""
        from .lifecycle.enqueue import Destination, check, prepare  # noqa: PLC0415

        destination = Destination(self.alias, self.database, self.queue_options)
        prepared, checked = [], None
        for call in calls:
            # Mostly all of them are of the same task.
            if call.task is not checked:
                self.validate_task(call.task)
                check(call.task)
                checked = call.task
            prepared.append(prepare(call, destination))
        return prepared

    def validate_task(self, task: AnyTask) -> None:
        """Refuse a task that this backend cannot take, and say what would help."""
        if self.queues and task.queue_name not in self.queues:
            raise InvalidTask(
                f"Queue '{task.queue_name}' is not valid for backend. Name it in "
                f"TASKS[{self.alias!r}]['QUEUES'], where an empty list allows any."
            )
        super().validate_task(task)

    def get_result(self, result_id: str) -> AnyResult:
        """The result of that id, from the database it was written to."""
        from .lifecycle.results import get_result  # noqa: PLC0415

        return get_result(self.database, result_id)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        return checks.check_backend(self)

    @property
    def queue_options(self) -> BackendOptions:
        return backend_options(self.alias, self.options)

    @property
    def database(self) -> str:
        """The alias of the database that holds this backend's jobs."""
        from .models import Job  # noqa: PLC0415

        named = self.queue_options.database
        return named or router.db_for_write(Job, task_backend=self.alias)


def enqueue_all(
    calls: Iterable[Call | tuple[AnyTask, *tuple[Any, ...]]],
) -> list[AnyResult]:
    """Enqueue many calls at once; the results come in the same order.

    A call is made with ``greet.bind("World", times=4)``, or is a tuple of task,
    arguments and keyword arguments, of which the last two may be left out. All are
    checked before any is stored. Those on other backends are enqueued there, one by
    one.
    """
    from .lifecycle.enqueue import write  # noqa: PLC0415

    ordered = [call if isinstance(call, Call) else Call(*call) for call in calls]
    prepared: dict[int, Prepared] = {}
    elsewhere: dict[int, Call] = {}
    for alias in dict.fromkeys(call.task.backend for call in ordered):
        backend = task_backends[alias]
        here = {i: call for i, call in enumerate(ordered) if call.task.backend == alias}
        if isinstance(backend, RobustQueueBackend):
            prepared |= zip(here, backend.prepare_all(here.values()), strict=True)
        else:
            elsewhere |= here
    results = {
        i: call.task.enqueue(*call.args, **call.kwargs) for i, call in elsewhere.items()
    }
    write(list(prepared.values()))
    # Of a unique task it may be the result of a job that was there before.
    results |= {i: each.result for i, each in prepared.items()}
    return [results[i] for i in range(len(ordered))]


async def aenqueue_all(
    calls: Iterable[Call | tuple[AnyTask, *tuple[Any, ...]]],
) -> list[AnyResult]:
    """See enqueue_all()."""
    return await sync_to_async(enqueue_all, thread_sensitive=True)(calls)
