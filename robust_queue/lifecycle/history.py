"""How the runs of recurring tasks have ended ──▶ what is written down of them.

The history outlives the jobs: it is completed once a minute, and whenever jobs are
about to be cleared.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from robust_queue.aliases import options_of
from robust_queue.models import (
    FailedExecution,
    FinishedExecution,
    Job,
    RecurringExecution,
)
from robust_queue.models.recurring import Outcome
from robust_queue.stores import store_for

from .calls import is_kept
from .policy import policy_for

BATCH_SIZE = 500
_COLUMNS = ["outcome", "started_at", "finished_at", "exception_class"]


def complete_history(database: str) -> Iterator[None]:
    """Write down how runs have ended since the last time, a batch at a time."""
    last_seen = 0
    while found := list(_open(database).filter(pk__gt=last_seen)[:BATCH_SIZE]):
        _complete(database, found)
        last_seen = found[-1].pk
        yield


def complete_before_clearing(database: str, job_ids: Sequence[UUID]) -> None:
    """Write down how these jobs have ended, those of recurring tasks among them."""
    if not job_ids:
        return
    if found := list(_open(database).filter(job_id__in=job_ids)):
        _complete(database, found)


def reopen(database: str, job_ids: Sequence[UUID]) -> None:
    """Failed runs have been sent back: what becomes of them is open again."""
    entries = RecurringExecution.objects.using(database)
    failed = entries.filter(job_id__in=job_ids, outcome=Outcome.FAILED)
    failed.update(outcome=Outcome.ENQUEUED)


def _open(database: str) -> QuerySet[RecurringExecution]:
    """Runs that are not known to be over."""
    rows = RecurringExecution.objects.using(database).filter(outcome=Outcome.ENQUEUED)
    return rows.filter(job_id__isnull=False).order_by("pk")


def _complete(database: str, entries: Sequence[RecurringExecution]) -> None:
    ids = [each.job_id for each in entries]
    ends = _ends(database, ids)
    changed = [
        each
        for each in entries
        if each.job_id in ends and _note(each, ends[each.job_id])
    ]
    rows = RecurringExecution.objects.using(database)
    rows.bulk_update(changed, _COLUMNS)
    succeeded = [each for each in changed if each.outcome == Outcome.SUCCEEDED]
    _drop_unkept(database, [each.job_id for each in succeeded if each.job_id])


def _drop_unkept(database: str, job_ids: Sequence[UUID]) -> None:
    """Jobs that were kept for the history alone have done their duty."""
    jobs = Job.objects.using(database).filter(pk__in=job_ids)
    unkept = [
        job.pk
        for job in jobs.only("task_path", "backend", "queue_name")
        if not is_kept(policy_for(job), options_of(job.backend))
    ]
    if unkept:
        store_for(database).clear("finished", unkept, before=timezone.now())


def _note(entry: RecurringExecution, end: dict[str, Any]) -> bool:
    """Take an end over; False if it is known."""
    if all(getattr(entry, name) == value for name, value in end.items()):
        return False
    for name, value in end.items():
        setattr(entry, name, value)
    return True


def _ends(database: str, job_ids: Sequence[UUID | None]) -> dict[UUID | None, Any]:
    """How those of the jobs that are over have ended."""
    jobs = Job.objects.using(database).filter(pk__in=job_ids)
    there = set(jobs.values_list("pk", flat=True))
    ends: dict[UUID | None, Any] = {
        job_id: {"outcome": Outcome.GONE} for job_id in job_ids if job_id not in there
    }
    finished = FinishedExecution.objects.using(database).filter(pk__in=there)
    for pk, started, ended in finished.values_list("pk", "started_at", "finished_at"):
        ends[pk] = _end(Outcome.SUCCEEDED, started, ended, "")
    failed = FailedExecution.objects.using(database).filter(pk__in=there)
    names = ("pk", "started_at", "finished_at", "exception_class")
    for pk, started, ended, error in failed.values_list(*names):
        ends[pk] = _end(Outcome.FAILED, started, ended, error)
    return ends


def _end(outcome: Outcome, *values: Any) -> dict[str, Any]:
    return dict(zip(_COLUMNS, (outcome, *values), strict=True))
