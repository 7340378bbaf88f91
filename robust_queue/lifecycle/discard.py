"""Waiting or failed ──▶ gone."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from uuid import UUID

from robust_queue.exceptions import UndiscardableError
from robust_queue.models import ClaimedExecution
from robust_queue.stores import store_for
from robust_queue.stores.rows import DISCARDABLE

from .admit import limits_of_ids, promote
from .names import check_queue_name
from .selection import (
    BATCH_SIZE,
    PENDING,
    STATES_TO_LEAVE,
    Filter,
    OnProgress,
    Tally,
    Wanted,
    in_batches,
    standing,
)


def discard(database: str, job_id: UUID | str) -> bool:
    """Delete a job that is waiting or has failed; False if there is none.

    A claimed job is running, or about to: it raises ``UndiscardableError``.
    """
    job_id = UUID(str(job_id))
    # Twice: a job may have failed, or been released, just behind the first look.
    for _ in range(2):
        if discard_all(database, [job_id]):
            return True
        if ClaimedExecution.objects.using(database).filter(pk=job_id).exists():
            raise UndiscardableError(f"Job {job_id} is claimed by a worker.")
    return False


def discard_all(database: str, job_ids: Iterable[UUID | str]) -> int:
    """Delete those of the jobs that are waiting or have failed; return how many.

    In batches, each a transaction of its own, so that no lock is held for long.
    """
    wanted = [UUID(str(job_id)) for job_id in job_ids]
    batches = range(0, len(wanted), BATCH_SIZE)
    return sum(_discard(database, wanted[i : i + BATCH_SIZE]) for i in batches)


def discard_matching(
    database: str, wanted: Wanted, *, on_progress: OnProgress | None = None
) -> Tally:
    """Delete every job that matches and is waiting or has failed.

    Passed over is what somebody else has got hold of meanwhile: a job that a worker has
    claimed, or a failed one that was retried.
    """
    if wanted.state not in STATES_TO_LEAVE:
        raise UndiscardableError(f"Jobs that are {wanted.state} cannot be discarded.")
    change = partial(_discard_batch, database, STATES_TO_LEAVE[wanted.state])
    return in_batches(database, wanted, change, on_progress)


def _discard(
    database: str, ids: Sequence[UUID], states: Sequence[str] = DISCARDABLE
) -> int:
    limits = limits_of_ids(database, ids)
    done = store_for(database).discard(ids, states)
    # Those that were ready have given their slots back.
    promote(database, limits)
    return done


def _discard_batch(database: str, states: Sequence[str], ids: Sequence[UUID]) -> Tally:
    done = _discard(database, ids, states)
    if done == len(ids):
        return Tally(done, done)
    left = Counter(standing(database, ids).values())
    gone = Counter(gone=len(ids) - done - left.total())
    return Tally(len(ids), done, dict(left + gone))


# In the direction of the arrows: what moves on meanwhile is met again.
WAITING = ("scheduled", "blocked", "ready")


def clear_queue(
    database: str,
    queue_name: str,
    states: Sequence[str] = (),
    *,
    on_progress: OnProgress | None = None,
) -> int:
    """Delete the jobs that wait in a queue, or those in these states; return how many.

    What comes in meanwhile is left alone, and what a worker has claimed, also if all
    that is ``pending`` is meant.
    """
    check_queue_name(queue_name)
    total = Tally()
    for state in waiting_states(states):
        before, wanted = total, Filter(state=state, queue_name=queue_name)
        total += discard_matching(
            database,
            wanted,
            on_progress=on_progress and _counted_on(on_progress, before),
        )
        if on_progress and on_progress(total) is False:
            break
    return total.done


def waiting_states(states: Sequence[str]) -> list[str]:
    """Those of waiting that are meant; all of them if nothing is said."""
    for each in states:
        if each not in (*WAITING, PENDING):
            known = ", ".join((*WAITING, PENDING))
            raise ValueError(f"{each!r} is not a state of waiting: {known}.")
    is_all = not states or PENDING in states
    return [each for each in WAITING if is_all or each in states]


def _counted_on(on_progress: OnProgress, before: Tally) -> OnProgress:
    return lambda tally: on_progress(before + tally)
