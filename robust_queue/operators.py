"""What can be done about queues, tasks and workers from code, while they run.

Which database is meant is told by ``using``, an alias of TASKS; without it, it is the
one that ``manage.py robust_queue`` serves.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar
from uuid import UUID

from asgiref.sync import sync_to_async

from .aliases import database_named
from .compat import AnyTask

if TYPE_CHECKING:
    from .lifecycle.queues import QueueStatus
    from .lifecycle.workers import WorkerStatus

Until: TypeAlias = datetime | timedelta | None

P = ParamSpec("P")
R = TypeVar("R")

# Models can be imported only when apps are loaded, and these names long before.


class Queue:
    """A queue by its name.

    What it tells is asked for when the first question comes, and then stays as it is:
    ``refresh()`` looks again, and so does whatever changes the queue.
    """

    def __init__(
        self, name: str, *, database: str, status: "QueueStatus | None" = None
    ) -> None:
        self.name = name
        self._database = database
        self._status = status

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} of database {self._database!r}>"

    @property
    def size(self) -> int:
        """How many jobs are ready."""
        return self.status.ready

    @property
    def latency(self) -> timedelta:
        """For how long the oldest of them has waited; no time if there is none."""
        return self.status.latency

    @property
    def is_paused(self) -> bool:
        return self.status.is_paused

    @property
    def paused_until(self) -> datetime | None:
        """When it gives out work again by itself; None if it does not, or does now."""
        return self.status.paused_until

    @property
    def status(self) -> "QueueStatus":
        """All of it: also what is scheduled, blocked and running."""
        if self._status is None:
            from .lifecycle.queues import queue_in_full  # noqa: PLC0415

            self._status = queue_in_full(self._database, self.name)
        return self._status

    def refresh(self) -> None:
        """Look again."""
        self._status = None
        self.status  # noqa: B018 (asks)

    def pause(self, *, until: Until = None) -> bool:
        """Give out no work from the next poll on; False if it is so already.

        Until that moment, for so long, or until ``resume()``. What is said last counts.
        """
        from .lifecycle.pause import pause  # noqa: PLC0415

        self._status = None
        return pause(self._database, self.name, until=until)

    def resume(self) -> bool:
        """Give out work again; False if it was not paused."""
        from .lifecycle.pause import resume  # noqa: PLC0415

        self._status = None
        return resume(self._database, self.name)

    def clear(self, *states: str) -> int:
        """Delete the jobs that wait in it, in batches; return how many there were.

        Those that are scheduled, blocked or ready, unless some of these are named. What
        a worker has claimed goes on.
        """
        from .lifecycle.discard import clear_queue  # noqa: PLC0415

        self._status = None
        return clear_queue(self._database, self.name, states)

    async def arefresh(self) -> None:
        """See refresh()."""
        await _aside(self.refresh)

    async def apause(self, *, until: Until = None) -> bool:
        """See pause()."""
        return await self._and_look(self.pause, until=until)

    async def aresume(self) -> bool:
        """See resume()."""
        return await self._and_look(self.resume)

    async def aclear(self, *states: str) -> int:
        """See clear()."""
        return await self._and_look(self.clear, *states)

    async def _and_look(
        self, verb: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        # A question that comes later must not query: there may be an event loop.
        done = await _aside(verb, *args, **kwargs)
        await self.arefresh()
        return done


def queue(name: str, *, using: str | None = None) -> Queue:
    """The queue of that name, whether anything is in it or not."""
    from .lifecycle.names import check_queue_name  # noqa: PLC0415

    check_queue_name(name)
    return Queue(name, database=database_named(using))


def queues(*, using: str | None = None) -> list[Queue]:
    """Every queue with unfinished jobs, or that is paused or named in the settings.

    Five statements, however many there are. They count jobs: for people who look.
    """
    from .lifecycle.queues import queues_in_full  # noqa: PLC0415

    database = database_named(using)
    found = queues_in_full(database)
    return [Queue(each.name, database=database, status=each) for each in found]


def pause_task(
    task: AnyTask | str, *, until: Until = None, using: str | None = None
) -> bool:
    """Begin no job of this task, whatever its queue; False if it is so already.

    Workers know of it about a second later, and what runs goes on. Jobs that come up
    are set aside, and brought back by ``resume_task()`` or when the time is over.
    """
    from .lifecycle.pause_task import pause_task  # noqa: PLC0415

    return pause_task(database_named(using), _path(task), until=until)


def resume_task(task: AnyTask | str, *, using: str | None = None) -> bool:
    """Begin jobs of a paused task again; False if it was not paused."""
    from .lifecycle.pause_task import resume_task  # noqa: PLC0415

    return resume_task(database_named(using), _path(task))


def workers(*, using: str | None = None) -> "list[WorkerStatus]":
    """The workers that are alive, by name."""
    from .lifecycle.workers import workers  # noqa: PLC0415

    return workers(database_named(using))


def tune(
    worker: "WorkerStatus | UUID | str",
    *,
    threads: int | None = None,
    queues: Sequence[str] | None = None,
    reset: bool = False,
    using: str | None = None,
) -> None:
    """Have a worker go on with other queues, or more or fewer threads.

    It is named by its id, its name, or a beginning of that. What is not given stays as
    it is; with ``reset`` it is as configured. ``TuningError`` if it cannot do that.
    """
    from .lifecycle.tune import tune  # noqa: PLC0415

    tune(
        database_named(using),
        _identity(worker),
        threads=threads,
        queues=queues,
        reset=reset,
    )


def quiet_process(
    process: "WorkerStatus | UUID | str", *, using: str | None = None
) -> None:
    """Have a worker take nothing new, or all workers of a supervisor.

    They go on with what they run. It is named as for ``tune()``; ``TuningError`` if it
    is not there.
    """
    from .lifecycle.quiet import quiet_process  # noqa: PLC0415

    quiet_process(database_named(using), _identity(process))


def wake_process(
    process: "WorkerStatus | UUID | str", *, using: str | None = None
) -> None:
    """Have a quiet worker take jobs again, or all workers of a supervisor."""
    from .lifecycle.quiet import wake_process  # noqa: PLC0415

    wake_process(database_named(using), _identity(process))


def stop_process(
    process: "WorkerStatus | UUID | str", *, using: str | None = None
) -> None:
    """Have a worker end and be replaced, or a supervisor stop as by a TERM signal."""
    from .lifecycle.quiet import stop_process  # noqa: PLC0415

    stop_process(database_named(using), _identity(process))


async def aqueue(name: str, *, using: str | None = None) -> Queue:
    """See queue(). It has looked already."""
    found = queue(name, using=using)
    await found.arefresh()
    return found


async def aqueues(*, using: str | None = None) -> list[Queue]:
    """See queues()."""
    return await _aside(queues, using=using)


async def apause_task(
    task: AnyTask | str, *, until: Until = None, using: str | None = None
) -> bool:
    """See pause_task()."""
    return await _aside(pause_task, task, until=until, using=using)


async def aresume_task(task: AnyTask | str, *, using: str | None = None) -> bool:
    """See resume_task()."""
    return await _aside(resume_task, task, using=using)


async def aworkers(*, using: str | None = None) -> "list[WorkerStatus]":
    """See workers()."""
    return await _aside(workers, using=using)


async def atune(worker: "WorkerStatus | UUID | str", **changes: Any) -> None:
    """See tune()."""
    await _aside(tune, worker, **changes)


async def aquiet_process(
    process: "WorkerStatus | UUID | str", *, using: str | None = None
) -> None:
    """See quiet_process()."""
    await _aside(quiet_process, process, using=using)


async def awake_process(
    process: "WorkerStatus | UUID | str", *, using: str | None = None
) -> None:
    """See wake_process()."""
    await _aside(wake_process, process, using=using)


async def astop_process(
    process: "WorkerStatus | UUID | str", *, using: str | None = None
) -> None:
    """See stop_process()."""
    await _aside(stop_process, process, using=using)


async def _aside(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    return await sync_to_async(function, thread_sensitive=True)(*args, **kwargs)


def _identity(process: "WorkerStatus | UUID | str") -> str:
    named: Any = getattr(process, "id", process)
    return str(named)


def _path(task: AnyTask | str) -> str:
    return task if isinstance(task, str) else str(task.module_path)
