"""Failed ──▶ ready again, because somebody asks for it."""

from collections.abc import Iterable, Sequence
from functools import partial
from uuid import UUID

from django.utils import timezone

from robust_queue.aliases import options_of
from robust_queue.stores import store_for

from .selection import BATCH_SIZE, OnProgress, Tally, Wanted, in_batches
from .wake import wake


def retry(database: str, job_id: UUID | str) -> bool:
    """Send a failed job back to its queue; False if it has not failed, or no longer.

    It grants one more attempt, whatever ``max_attempts`` says: attempts are counted
    on, and the failed one is kept among the earlier ones.
    """
    return retry_all(database, [job_id]) == 1


def retry_all(database: str, job_ids: Iterable[UUID | str]) -> int:
    """Send those of the jobs that have failed back to their queues; return how many.

    In batches, each a transaction of its own, so that no lock is held for long.
    """
    wanted = [UUID(str(job_id)) for job_id in job_ids]
    store = store_for(database)
    batches = range(0, len(wanted), BATCH_SIZE)
    retried = sum(
        store.retry(wanted[i : i + BATCH_SIZE], rank=_rank, now=timezone.now())
        for i in batches
    )
    if retried:
        wake(database)
    return retried


def retry_matching(
    database: str, wanted: Wanted, *, on_progress: OnProgress | None = None
) -> Tally:
    """Send every failed job that matches back to its queue.

    Passed over is what somebody else has retried or discarded meanwhile.
    """
    if wanted.state != "failed":
        raise ValueError(f"Only failed jobs can be retried, not {wanted.state} ones.")
    return in_batches(database, wanted, partial(_retry_batch, database), on_progress)


def _retry_batch(database: str, ids: Sequence[UUID]) -> Tally:
    done = retry_all(database, ids)
    late = len(ids) - done
    return Tally(len(ids), done, {"not failed any more": late} if late else {})


def _rank(alias: str, priority: int) -> int:
    return options_of(alias).priority_order.rank(priority)
