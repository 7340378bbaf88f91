"""Failed ──▶ ready again, because somebody asks for it."""

from collections.abc import Iterable, Sequence
from functools import partial
from uuid import UUID

from django.utils import timezone

from robust_queue.aliases import options_of
from robust_queue.stores import store_for

from .admit import admit_ids
from .history import reopen
from .selection import BATCH_SIZE, OnProgress, Tally, Wanted, in_batches, standing
from .wake import wake


def retry(database: str, job_id: UUID | str) -> bool:
    """Send a failed job back to its queue; False if it has not failed, or no longer.

    It grants one more attempt, whatever ``max_attempts`` says: attempts are counted
    on, and the failed one is kept among the earlier ones. A unique one stays failed
    while another one of it waits or runs.
    """
    return retry_all(database, [job_id]) == 1


def retry_all(database: str, job_ids: Iterable[UUID | str]) -> int:
    """Send those of the jobs that have failed back to their queues; return how many.

    In batches, each a transaction of its own, so that no lock is held for long.
    """
    wanted = [UUID(str(job_id)) for job_id in job_ids]
    batches = range(0, len(wanted), BATCH_SIZE)
    retried = sum(_retry(database, wanted[i : i + BATCH_SIZE]) for i in batches)
    if retried:
        wake(database)
    return retried


def _retry(database: str, ids: Sequence[UUID]) -> int:
    retried = store_for(database).retry(ids, rank=_rank, now=timezone.now())
    if retried:
        reopen(database, ids)
        # Those that need slots are blocked until they have them.
        admit_ids(database, ids)
    return retried


def retry_matching(
    database: str, wanted: Wanted, *, on_progress: OnProgress | None = None
) -> Tally:
    """Send every failed job that matches back to its queue.

    Passed over is what somebody else has retried or discarded meanwhile, and a unique
    one of which another one waits or runs.
    """
    if wanted.state != "failed":
        raise ValueError(f"Only failed jobs can be retried, not {wanted.state} ones.")
    return in_batches(database, wanted, partial(_retry_batch, database), on_progress)


def _retry_batch(database: str, ids: Sequence[UUID]) -> Tally:
    done = retry_all(database, ids)
    if done == len(ids):
        return Tally(done, done)
    # Only unique ones stay: of all others one more attempt is made.
    held_back = list(standing(database, ids).values()).count("failed")
    late = len(ids) - done - held_back
    reasons = {
        "not failed any more": late,
        "another one of it waits or runs": held_back,
    }
    return Tally(len(ids), done, {why: n for why, n in reasons.items() if n})


def _rank(alias: str, priority: int) -> int:
    return options_of(alias).priority_order.rank(priority)
