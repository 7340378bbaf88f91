"""Waiting or failed ──▶ gone."""

from collections.abc import Iterable
from uuid import UUID

from django.db import transaction

from robust_queue.exceptions import UndiscardableError
from robust_queue.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Job,
    ReadyExecution,
    ScheduledExecution,
)
from robust_queue.stores.conflicts import retried

# In the direction of the arrows: a job that moves on while this looks for it is met
# again at the next table. Whoever claims it first has it.
_DISCARDABLE = (ScheduledExecution, BlockedExecution, FailedExecution, ReadyExecution)


def discard(database: str, job_id: UUID) -> bool:
    """Delete a job that is waiting or has failed; False if there is none.

    A claimed job is running, or about to: it raises ``UndiscardableError``.
    """
    if discard_all(database, [job_id]):
        return True
    if ClaimedExecution.objects.using(database).filter(pk=job_id).exists():
        raise UndiscardableError(f"Job {job_id} is claimed by a worker.")
    return False


def discard_all(database: str, job_ids: Iterable[UUID]) -> int:
    """Delete those of the jobs that are waiting or have failed; return how many."""
    wanted = list(job_ids)

    def change() -> int:
        with transaction.atomic(using=database):
            gone = _delete_executions(database, wanted)
            Job.objects.using(database).filter(pk__in=gone).delete()
            return len(gone)

    return retried(database, change)


def _delete_executions(database: str, job_ids: list[UUID]) -> list[UUID]:
    gone: list[UUID] = []
    for model in _DISCARDABLE:
        rows = model.objects.using(database).filter(pk__in=job_ids)
        locked = list(
            rows.select_for_update().order_by("pk").values_list("pk", flat=True)
        )
        rows.filter(pk__in=locked).delete()
        gone += locked
    return gone
