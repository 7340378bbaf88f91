"""Waiting ──▶ failed, as cancelled; whoever runs a claimed job is asked to end it.

A request is a row of its own. The worker that holds the job looks for it about once a
second, or at once where notifications arrive. Should the job go back to its queue
meanwhile, or be tried again, the sweep meets it there.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from robust_queue.exceptions import TaskCancelled
from robust_queue.models import Cancellation, ClaimedExecution
from robust_queue.policies import Kind
from robust_queue.stores import store_for
from robust_queue.stores.conflicts import retried

from . import announce, results
from .admit import limits_of_ids, promote
from .failure import words_of
from .news import news_of
from .selection import (
    BATCH_SIZE,
    OnProgress,
    Tally,
    Wanted,
    in_batches,
    standing,
)
from .wake import tell_of_cancellation

MOST_REQUESTS = 10_000
# A request as young as that may yet be heard by the worker it is meant for.
YOUNG = timedelta(seconds=2)

_OVER = ("finished", "failed")


class Cancelled(NamedTuple):
    """What was done about jobs that somebody wants to end."""

    ended: int
    """Waited, and will never run."""

    asked: int
    """Run, or are about to: their workers are asked to end them."""


def cancel(database: str, job_id: UUID | str) -> bool:
    """Cancel a job that waits or runs; False if it has ended, or does not exist.

    One that waits is failed at once. One that runs ends when it heeds the request: a
    coroutine where it waits for something, an isolated task in any case, a task in a
    thread where it asks whether it was cancelled.
    """
    return any(cancel_all(database, [job_id]))


def cancel_all(database: str, job_ids: Iterable[UUID | str]) -> Cancelled:
    """Cancel those of the jobs that wait or run, in batches."""
    wanted = [UUID(str(job_id)) for job_id in job_ids]
    batches = [wanted[i : i + BATCH_SIZE] for i in range(0, len(wanted), BATCH_SIZE)]
    done = [_cancel(database, each) for each in batches]
    return Cancelled(sum(each.ended for each in done), sum(each.asked for each in done))


def cancel_matching(
    database: str, wanted: Wanted, *, on_progress: OnProgress | None = None
) -> Tally:
    """Cancel every job that matches and waits or runs.

    Passed over is what has come to its end meanwhile.
    """
    return in_batches(database, wanted, partial(_cancel_batch, database), on_progress)


def _cancel_batch(database: str, job_ids: Sequence[UUID]) -> Tally:
    done = sum(_cancel(database, job_ids))
    if done == len(job_ids):
        return Tally(done, done)
    over = Counter(standing(database, job_ids).values())
    left = {state: over[state] for state in ("finished", "failed") if over[state]}
    return Tally(len(job_ids), done, left)


def asked_for(database: str) -> set[UUID]:
    """The jobs whose end somebody has asked for while they ran."""
    requests = Cancellation.objects.using(database).values_list("job_id", flat=True)
    return set(requests[:MOST_REQUESTS])


def withdraw(database: str, job_ids: Sequence[UUID]) -> None:
    """What was asked for has come about."""
    if job_ids:
        requests = Cancellation.objects.using(database).filter(pk__in=job_ids)
        retried(database, requests.delete)


def sweep(database: str, *, limit: int = BATCH_SIZE) -> int:
    """Deal with requests whose jobs do not run any more; return with how many.

    A job that waits again is cancelled there; one that has ended needs nothing.
    """
    old = Cancellation.objects.using(database).filter(
        requested_at__lte=timezone.now() - YOUNG
    )
    running = ClaimedExecution.objects.filter(job_id=OuterRef("job_id"))
    left = old.filter(~Exists(running)).order_by("requested_at")
    asked = list(left.values_list("job_id", flat=True)[:limit])
    if not asked:
        return 0
    ended = set(_end_waiting(database, asked))
    # One that somebody has got hold of meanwhile is still to be ended.
    found = standing(database, asked)
    settled = [
        each for each in asked if each in ended or found.get(each, "failed") in _OVER
    ]
    # Not a younger request, made after somebody has retried the job.
    retried(database, old.filter(pk__in=settled).delete)
    return len(settled)


def _cancel(database: str, job_ids: Sequence[UUID]) -> Cancelled:
    ended, asked = set[UUID](), set[UUID]()
    # Twice: a job may have gone back to its queue just behind the first look.
    for _ in range(2):
        left = [each for each in job_ids if each not in ended | asked]
        ended |= set(_end_waiting(database, left))
        asked |= _ask(database, [each for each in left if each not in ended])
    if asked:
        tell_of_cancellation(database)
    return Cancelled(len(ended), len(asked))


def _end_waiting(database: str, job_ids: Sequence[UUID]) -> list[UUID]:
    error = TaskCancelled("The job was cancelled before it began.")
    words = (Kind.CANCELLED.value, *words_of(error))
    limits = limits_of_ids(database, job_ids)
    ended = store_for(database).fail_waiting(
        dict.fromkeys(job_ids, words), now=timezone.now()
    )
    # One that was ready has given its slots back.
    promote(database, limits)
    telling = partial(_tell, database, ended, error)
    transaction.on_commit(telling, using=database, robust=True)
    return ended


def _ask(database: str, job_ids: Sequence[UUID]) -> set[UUID]:
    running = _running(database, job_ids)
    now = timezone.now()
    requests = [Cancellation(job_id=each, requested_at=now) for each in running]
    insert = partial(
        Cancellation.objects.using(database).bulk_create, ignore_conflicts=True
    )
    if requests:
        retried(database, partial(insert, requests))
    return running


def _running(database: str, job_ids: Sequence[UUID]) -> set[UUID]:
    claims = ClaimedExecution.objects.using(database).filter(pk__in=job_ids)
    return set(claims.values_list("pk", flat=True)) if job_ids else set()


def _tell(database: str, ended: Iterable[UUID], error: TaskCancelled) -> None:
    for job_id in ended:
        with news_of(job_id):
            announce.finished(results.get_result(database, job_id), error)
