"""Blocked ──▶ ready, as soon as there is a slot for each of its keys; else it waits.

Or fails at once, if its task says that such a job is to be discarded.

Whoever blocks a job and whoever frees a slot calls this when that is committed. Should
neither come to it, because a process died in between, a sweep does a few seconds later.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Protocol
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from robust_queue import registry, transactions
from robust_queue.compat import AnyTask
from robust_queue.configuration import current
from robust_queue.exceptions import TaskDiscarded
from robust_queue.flow.concurrency import Concurrency, limit_of
from robust_queue.flow.keys import split
from robust_queue.models import BlockedExecution, Job, Semaphore
from robust_queue.policies import Kind
from robust_queue.reports import report
from robust_queue.stores import store_for
from robust_queue.stores.rows import Limit, LimitedJob

from . import announce, results
from .failure import words_of
from .news import news_of
from .wake import wake


class Limited(Protocol):
    """Whatever tells which task it is of, and which keys it has."""

    @property
    def task_path(self) -> str: ...
    @property
    def concurrency_key(self) -> str: ...


def admit(database: str, jobs: Sequence[LimitedJob]) -> list[UUID]:
    """Make jobs ready that were blocked just now, if there are slots for them.

    Returns those that came to their end instead. If there is a transaction of the
    caller's, it happens when that commits: until then it would keep everybody else
    from their slots.
    """
    if not jobs:
        return []
    if transactions.is_open(database):
        action = partial(_admit, database, jobs)
        transaction.on_commit(action, using=database, robust=True)
        return []
    try:
        return _admit(database, jobs)
    except Exception as error:
        # They are stored. Whoever enqueued them would do it again; the sweep comes.
        report(error, "slots were looked for, for jobs that are stored")
        return []


def admit_ids(database: str, job_ids: Sequence[UUID]) -> None:
    """Likewise for those of the jobs that are blocked, by their identifiers."""
    blocked = BlockedExecution.objects.using(database).filter(pk__in=job_ids)
    facts = blocked.values_list("pk", *(f"job__{name}" for name in _FACTS))
    admit(database, [LimitedJob(*row) for row in facts])


_FACTS = ("task_path", "backend", "queue_name", "concurrency_key")


def promote(
    database: str, limits: Sequence[Limit], *, is_told: bool = True
) -> dict[UUID, str]:
    """Make blocked jobs of these keys ready, as many as there are slots for.

    Returns their queues; workers are told of them unless the caller is the one who
    will take them. If there is a transaction of the caller's, it happens when that
    commits, and nothing is returned.
    """
    if not limits:
        return {}
    if transactions.is_open(database):
        action = partial(promote, database, limits)
        transaction.on_commit(action, using=database, robust=True)
        return {}
    promoted = store_for(database).promote(
        limits,
        limits_of=lambda job_id: limits_of_ids(database, [job_id]),
        now=timezone.now(),
    )
    if promoted and is_told:
        wake(database, set(promoted.values()))
    return promoted


def promote_after(
    database: str, ended: Iterable[Limited], *, is_told: bool = True
) -> dict[UUID, str]:
    """Likewise for the keys of jobs that have given their slots back."""
    limited = [each for each in ended if each.concurrency_key]
    return promote(database, limits_of(limited), is_told=is_told)


def promote_keys(database: str, keys: Iterable[str]) -> None:
    """Likewise where nobody knows the tasks; the limits are what they were before."""
    each = {key for several in keys for key in split(several)}
    expires_at = timezone.now() + duration_of(None)
    promote(database, [Limit(key, None, expires_at) for key in sorted(each)])


def limits_of(jobs: Iterable[Limited]) -> list[Limit]:
    """How much of each key there is, as the running code declares it."""
    found, now = dict[str, Limit](), timezone.now()
    for job in jobs:
        task = registry.find(job.task_path)
        for key in split(job.concurrency_key):
            if key not in found or found[key].slots is None:
                found[key] = Limit(key, limit_of(task, key), now + duration_of(task))
    return [found[key] for key in sorted(found)]


def duration_of(task: AnyTask | None) -> timedelta:
    """For how long a job may have a slot without running."""
    declared: Sequence[Concurrency] = getattr(task, "concurrency", None) or ()
    durations = [each.duration for each in declared if each.duration]
    return min(durations, default=current().default_concurrency_control_period)


def limits_of_ids(database: str, job_ids: Iterable[UUID]) -> list[Limit]:
    """The limits of those of the jobs that are there, and limited."""
    jobs = Job.objects.using(database).filter(pk__in=job_ids)
    limited = jobs.exclude(concurrency_key="")
    return limits_of(limited.only("task_path", "concurrency_key"))


# ── Conflicts ──────────────────────────────────────────────────────────────────


def _admit(database: str, jobs: Sequence[LimitedJob]) -> list[UUID]:
    promoted = promote(database, limits_of(jobs))
    left = [each for each in jobs if each.job_id not in promoted]
    unwanted = [each.job_id for each in left if is_to_be_discarded(each)]
    return discard(database, unwanted)


def is_to_be_discarded(job: Limited) -> bool:
    """Does its task want no job that would have to wait for a slot?"""
    task = registry.find(job.task_path)
    declared: Sequence[Concurrency] = getattr(task, "concurrency", None) or ()
    return any(each.on_conflict == "discard" for each in declared)


def discard(database: str, job_ids: Sequence[UUID]) -> list[UUID]:
    """Fail those of the jobs that are blocked, because their key is taken."""
    if not job_ids:
        return []
    errors = _conflicts(database, job_ids)
    words = {
        job_id: (Kind.DISCARDED.value, *words_of(error))
        for job_id, error in errors.items()
    }
    ended = store_for(database).fail_waiting(
        words, states=("blocked",), now=timezone.now()
    )
    told = {job_id: errors[job_id] for job_id in ended}
    telling = partial(_tell, database, told)
    transaction.on_commit(telling, using=database, robust=True)
    return ended


def _conflicts(database: str, job_ids: Sequence[UUID]) -> dict[UUID, TaskDiscarded]:
    rows = BlockedExecution.objects.using(database).filter(pk__in=job_ids)
    keys = dict(rows.values_list("pk", "concurrency_key"))
    semaphores = Semaphore.objects.using(database).filter(pk__in=set(keys.values()))
    holders = dict(semaphores.values_list("key", "holder_id"))
    return {
        job_id: TaskDiscarded(
            f"The concurrency key {key!r} was taken, by job {holders.get(key)}."
        )
        for job_id, key in keys.items()
    }


def _tell(database: str, ended: dict[UUID, TaskDiscarded]) -> None:
    for job_id, error in ended.items():
        with news_of(job_id):
            announce.finished(results.get_result(database, job_id), error)
