"""What can be done about recurring tasks from code, while schedulers run.

Which database is meant is told by ``using``, an alias of TASKS. Without it, it is the
one that keeps the jobs of the task, or that ``manage.py robust_queue`` serves.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from . import registry
from .aliases import database_named, database_of
from .compat import AnyTask
from .recurrence import MISSED_LIMIT, OnMissed, Overlap

if TYPE_CHECKING:
    from .models import RecurringExecution, RecurringTask

# Models can be imported only when apps are loaded, and these names long before.


def schedule_recurring(
    key: str,
    task: AnyTask | str,
    *,
    schedule: str | timedelta,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None,
    priority: int | None = None,
    timezone: str | None = None,
    description: str = "",
    enabled: bool = True,
    on_missed: OnMissed = "run_once",
    missed_limit: int = MISSED_LIMIT,
    overlap: Overlap = "allow",
    jitter: timedelta | float = 0,
    replace: bool = False,
    using: str | None = None,
) -> "RecurringTask":
    """Have a declared task recur from now on, as ``@recurring`` would have it.

    Running schedulers see it within seconds. A key that is taken raises
    ``RecurringTaskError``, unless it is to be replaced; what stands in code or settings
    cannot be.
    """
    from .lifecycle.timetable import schedule as put  # noqa: PLC0415

    return put(
        _home(task, using),
        key,
        task,
        schedule=schedule,
        args=args,
        kwargs=kwargs,
        queue_name=queue_name,
        priority=priority,
        timezone=timezone,
        description=description,
        enabled=enabled,
        on_missed=on_missed,
        missed_limit=missed_limit,
        overlap=overlap,
        jitter=jitter,
        replace=replace,
    )


def unschedule_recurring(key: str, *, using: str | None = None) -> None:
    """Have a task that was scheduled at run time recur no longer.

    Its history stays. One of code or settings raises ``RecurringTaskError``.
    """
    from .lifecycle.timetable import unschedule  # noqa: PLC0415

    unschedule(database_named(using), key)


def pause_recurring(key: str, *, using: str | None = None) -> bool:
    """Let its instants pass until it is resumed; False if it is paused already."""
    from .lifecycle.timetable import pause  # noqa: PLC0415

    return pause(database_named(using), key)


def resume_recurring(key: str, *, using: str | None = None) -> bool:
    """Go on with the next instant; False if it was not paused.

    What has passed meanwhile is recorded as skipped, and not made up for.
    """
    from .lifecycle.timetable import resume  # noqa: PLC0415

    return resume(database_named(using), key)


def run_recurring_now(key: str, *, using: str | None = None) -> "RecurringExecution":
    """Enqueue a run at once, whatever the schedule says and although it be paused.

    Returns what is written down of it, with the id of the job.
    """
    from .lifecycle.timetable import run_now  # noqa: PLC0415

    return run_now(database_named(using), key)


async def aschedule_recurring(
    key: str, task: AnyTask | str, **options: Any
) -> "RecurringTask":
    """See schedule_recurring()."""
    aside = sync_to_async(schedule_recurring, thread_sensitive=True)
    return await aside(key, task, **options)


async def aunschedule_recurring(key: str, *, using: str | None = None) -> None:
    """See unschedule_recurring()."""
    await sync_to_async(unschedule_recurring, thread_sensitive=True)(key, using=using)


async def apause_recurring(key: str, *, using: str | None = None) -> bool:
    """See pause_recurring()."""
    return await sync_to_async(pause_recurring, thread_sensitive=True)(key, using=using)


async def aresume_recurring(key: str, *, using: str | None = None) -> bool:
    """See resume_recurring()."""
    aside = sync_to_async(resume_recurring, thread_sensitive=True)
    return await aside(key, using=using)


async def arun_recurring_now(
    key: str, *, using: str | None = None
) -> "RecurringExecution":
    """See run_recurring_now()."""
    aside = sync_to_async(run_recurring_now, thread_sensitive=True)
    return await aside(key, using=using)


def _home(task: AnyTask | str, using: str | None) -> str:
    if using is not None:
        return database_named(using)
    declared = registry.resolve(task) if isinstance(task, str) else task
    return database_of(declared.get_backend()) or database_named(None)
