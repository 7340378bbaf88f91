"""What a search asks of jobs that takes more than to compare a column of theirs."""

from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from robust_queue.flow.keys import SEPARATOR
from robust_queue.models import Process, RecurringExecution

# Of a recurring task with more runs than these, jobs are asked one by one whose they
# are.
FEW_RUNS = 1_000


def id_in(text: str) -> UUID | None:
    """The id that a text is, or None."""
    try:
        return UUID(text)
    except ValueError:
        return None


def is_run_by(database: str, worker: str) -> Q:
    """Of a worker, by its name, or by the id of one that is alive."""
    identity = id_in(worker)
    named = {"pk": identity} if identity else {"name": worker}
    alive = Process.objects.using(database).filter(**named)
    return (
        Q(finished_execution__worker_id=worker)
        | Q(failed_execution__worker_id=worker)
        | Q(claimed_execution__process_id__in=alive.values("pk"))
    )


def is_run_of(database: str, recurring: str) -> Q:
    """Of a recurring task, by its key."""
    runs = RecurringExecution.objects.using(database).filter(
        task_key=recurring, job_id__isnull=False
    )
    some = [*runs.values_list("job_id", flat=True)[: FEW_RUNS + 1]]
    if len(some) <= FEW_RUNS:
        return Q(pk__in=some)
    return Q(Exists(runs.filter(job_id=OuterRef("pk"))))


def has_key(key: str) -> Q:
    """A job may have several keys, one under the other."""
    return (
        Q(concurrency_key=key)
        | Q(concurrency_key__startswith=f"{key}{SEPARATOR}")
        | Q(concurrency_key__endswith=f"{SEPARATOR}{key}")
        | Q(concurrency_key__contains=f"{SEPARATOR}{key}{SEPARATOR}")
    )


def has_ended(lookup: str, moment: datetime) -> Q:
    """Since a moment (``gte``), or before it (``lt``)."""
    return Q((f"finished_execution__finished_at__{lookup}", moment)) | Q(
        (f"failed_execution__finished_at__{lookup}", moment)
    )
