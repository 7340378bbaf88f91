"""What can be done about a job from code: the operators' verbs, on one job.

A job is named by its result, or by its id. Which database it is in is told by the
result, else by ``using``, an alias of TASKS; without either it is the one that
``manage.py robust_queue`` serves.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID

from asgiref.sync import sync_to_async

from .aliases import database_named
from .compat import AnyResult

AnyJob: TypeAlias = AnyResult | UUID | str

# Models can be imported only when apps are loaded, and these names long before.


def retry(job: AnyJob, *, using: str | None = None) -> bool:
    """Send a failed job back to its queue; False if it has not failed, or no longer.

    It grants one more attempt, whatever ``max_attempts`` says. Of a unique task also
    False while another one of it waits or runs.
    """
    from .lifecycle.retry import retry  # noqa: PLC0415

    return retry(_database(job, using), _id(job))


def cancel(job: AnyJob, *, using: str | None = None) -> bool:
    """Cancel a job that waits or runs; False if it has ended, or does not exist.

    One that waits has failed at once. One that runs is asked to end.
    """
    from .lifecycle.cancel import cancel  # noqa: PLC0415

    return cancel(_database(job, using), _id(job))


def discard(job: AnyJob, *, using: str | None = None) -> bool:
    """Delete a job that is waiting or has failed; False if there is none.

    A claimed job is running, or about to: it raises ``UndiscardableError``.
    """
    from .lifecycle.discard import discard  # noqa: PLC0415

    return discard(_database(job, using), _id(job))


def rerun(
    job: AnyJob,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None,
    priority: int | None = None,
    run_after: datetime | timedelta | None = None,
    using: str | None = None,
) -> AnyResult:
    """Replace a job that waits or has failed by a new one, and return its result.

    What is not given stays as it was. Everything is checked as by an enqueue. If
    somebody else has got hold of the job it raises ``UnreplaceableError``. One that has
    finished stays, and another one is made from it.
    """
    from .lifecycle.rerun import rerun  # noqa: PLC0415

    return rerun(
        _database(job, using),
        _id(job),
        args=args,
        kwargs=kwargs,
        queue_name=queue_name,
        priority=priority,
        run_after=run_after,
    )


async def aretry(job: AnyJob, *, using: str | None = None) -> bool:
    """See retry()."""
    return await sync_to_async(retry, thread_sensitive=True)(job, using=using)


async def acancel(job: AnyJob, *, using: str | None = None) -> bool:
    """See cancel()."""
    return await sync_to_async(cancel, thread_sensitive=True)(job, using=using)


async def adiscard(job: AnyJob, *, using: str | None = None) -> bool:
    """See discard()."""
    return await sync_to_async(discard, thread_sensitive=True)(job, using=using)


async def arerun(job: AnyJob, **changes: Any) -> AnyResult:
    """See rerun()."""
    return await sync_to_async(rerun, thread_sensitive=True)(job, **changes)


def _id(job: AnyJob) -> UUID:
    named = getattr(job, "id", job)
    try:
        return UUID(str(named))
    except ValueError:
        raise ValueError(f"{named!r} is not the id of a job.") from None


def _database(job: AnyJob, using: str | None) -> str:
    return database_named(using or getattr(job, "backend", None))
