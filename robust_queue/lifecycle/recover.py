"""Claims of a process that is gone ──▶ ready, failed, or what they had become."""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import models, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from robust_queue import policies, registry
from robust_queue.compat import AnyResult, TaskResultDoesNotExist
from robust_queue.models import ClaimedExecution, Process
from robust_queue.stores.rows import Failed, Outcome

from . import announce, results
from .failure import describe
from .settle import settle

logger = logging.getLogger("robust_queue")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldClaim:
    """A claim as the table tells of it."""

    job_id: UUID
    token: UUID
    process_id: UUID
    attempts: int
    task_path: str
    started_at: datetime


def claims_of(database: str, process_id: UUID) -> list[HeldClaim]:
    """What a process holds, whatever it may know of it."""
    return _read(ClaimedExecution.objects.using(database).filter(process_id=process_id))


def claims_of_nobody(database: str, *, limit: int) -> list[HeldClaim]:
    """Claims whose process is not known: it was registered before it claimed them."""
    process = Process.objects.filter(pk=OuterRef("process_id"))
    claims = ClaimedExecution.objects.using(database).filter(~Exists(process))
    return _read(claims.order_by("job_id")[:limit])


def record(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    """Record what a process that died had done, and had no time to settle."""
    held = settle(database, outcomes)
    _after_commit(database, partial(_tell_of_ends, database, held))
    return held


def give_up(
    database: str, claims: Sequence[HeldClaim], error: Exception, *, worker_id: str
) -> set[UUID]:
    """End attempts whose process died as their tasks' crash policy says.

    They fail, or are tried again after their backoff. Returns whose claims were still
    held: somebody else may have recovered them meanwhile.
    """
    outcomes = [_crash(each, error, worker_id) for each in claims]
    held = settle(database, outcomes)
    told = [each for each in outcomes if each.job_id in held]
    _after_commit(database, partial(_tell, database, told, error))
    return held


def _crash(claim: HeldClaim, error: Exception, worker_id: str) -> Failed:
    now = timezone.now()
    return Failed(
        job_id=claim.job_id,
        token=claim.token,
        attempts=claim.attempts,
        worker_id=worker_id,
        started_at=claim.started_at,
        finished_at=now,
        retry_at=policies.retry_at_after_crash(
            registry.find(claim.task_path), error, attempts=claim.attempts, now=now
        ),
        **describe(error),
    )


def _after_commit(database: str, telling: Callable[[], None]) -> None:
    # Whatever becomes of the news, the jobs are recovered.
    transaction.on_commit(telling, using=database, robust=True)


def _tell_of_ends(database: str, ended: Iterable[UUID]) -> None:
    for job_id in ended:
        logger.info("Job %s had ended before its process did.", job_id)
        # A job that is not kept is told by the log alone.
        with suppress(TaskResultDoesNotExist):
            _tell_of_end(results.get_result(database, job_id))


def _tell_of_end(result: AnyResult) -> None:
    if result.is_finished:
        announce.finished(result)


def _tell(database: str, outcomes: Sequence[Failed], error: Exception) -> None:
    for outcome in outcomes:
        if outcome.retry_at is None:
            logger.error("Job %s has failed: %s", outcome.job_id, error)
            announce.finished(results.get_result(database, outcome.job_id), error)
        else:
            when = outcome.retry_at.isoformat(" ", "seconds")
            logger.warning("Job %s runs again at %s: %s", outcome.job_id, when, error)


def _read(claims: "models.QuerySet[ClaimedExecution]") -> list[HeldClaim]:
    return [
        HeldClaim(
            job_id=each.job_id,
            token=each.token,
            process_id=each.process_id,
            attempts=each.attempts,
            task_path=each.job.task_path,
            started_at=each.created_at,
        )
        for each in claims.select_related("job")
    ]
