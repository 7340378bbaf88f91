"""How the runs of recurring tasks have ended ──▶ what is written down of them.

The history outlives the jobs: it is completed once a minute, and whenever jobs are
about to be cleared.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
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
from robust_queue.stores.conflicts import retried

from .calls import is_kept
from .policy import policy_for

BATCH_SIZE = 500
_COLUMNS = ["outcome", "started_at", "finished_at", "exception_class"]


def complete_history(database: str) -> Iterator[None]:
    """Write down how runs have ended since the last time, a batch at a time."""
    last_seen = 0
    while ids := _open_behind(database, last_seen):
        _complete(database, Q(pk__in=ids))
        last_seen = ids[-1]
        yield


def complete_before_clearing(database: str, job_ids: Sequence[UUID]) -> None:
    """Write down how these jobs have ended, those of recurring tasks among them.

    To be called before they are cleared. Whoever is about to write the same down is
    waited for: it must find the jobs there.
    """
    if job_ids and _open(database).filter(job_id__in=job_ids).exists():
        _complete(database, Q(job_id__in=job_ids))


def reopen(database: str, job_ids: Sequence[UUID]) -> None:
    """Failed runs have been sent back: what becomes of them is open again."""
    entries = RecurringExecution.objects.using(database)
    failed = entries.filter(job_id__in=job_ids, outcome=Outcome.FAILED)
    failed.update(outcome=Outcome.ENQUEUED)


def run_on(database: str, job_id: UUID, successor: UUID) -> None:
    """A run goes on as another job, in the transaction that replaces the one it was."""
    entries = RecurringExecution.objects.using(database).filter(job_id=job_id)
    entries.update(job_id=successor, outcome=Outcome.ENQUEUED)


def _open(database: str) -> QuerySet[RecurringExecution]:
    """Runs that are not known to be over."""
    rows = RecurringExecution.objects.using(database).filter(outcome=Outcome.ENQUEUED)
    return rows.filter(job_id__isnull=False).order_by("pk")


def _open_behind(database: str, last_seen: int) -> list[int]:
    rows = _open(database).filter(pk__gt=last_seen)
    return list(rows.values_list("pk", flat=True)[:BATCH_SIZE])


def _complete(database: str, which: Q) -> None:
    """Look at the jobs of locked entries.

    Without the lock, somebody could clear a job in between, which would then seem to be
    gone, or retry one, whose end would be written down as a failure for good.
    """

    def change() -> list[RecurringExecution]:
        with transaction.atomic(using=database):
            entries = list(_open(database).filter(which).select_for_update())
            ends = _ends(database, [each.job_id for each in entries])
            changed = [each for each in entries if each.job_id in ends]
            for each in changed:
                _note(each, ends[each.job_id])
            rows = RecurringExecution.objects.using(database)
            rows.bulk_update(changed, _COLUMNS)
        return changed

    changed = retried(database, change)
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


def _note(entry: RecurringExecution, end: dict[str, Any]) -> None:
    for name, value in end.items():
        setattr(entry, name, value)


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
