"""Claims of a process that is gone ──▶ ready, failed, or what they had become."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import models, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from robust_queue import policies, registry
from robust_queue.compat import TaskResultDoesNotExist
from robust_queue.models import ClaimedExecution, Job, Process
from robust_queue.stores.rows import Failed, Outcome

from . import announce, results
from .failure import describe
from .jobless import without_jobless
from .settle import settle

logger = logging.getLogger("robust_queue")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldClaim:
    """A claim as the table tells of it; ``task_path`` is empty if its job is gone."""

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
    whole = without_jobless(database, claims)
    outcomes = [_crash(each, error, worker_id) for each in whole]
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
        with _news_of(job_id):
            result = results.get_result(database, job_id)
            if result.is_finished:
                announce.finished(result)


def _tell(database: str, outcomes: Sequence[Failed], error: Exception) -> None:
    for outcome in outcomes:
        with _news_of(outcome.job_id):
            result = results.get_result(database, outcome.job_id)
            if outcome.retry_at is None:
                announce.finished(result, error)
            else:
                announce.retried(result, outcome, error)


@contextmanager
def _news_of(job_id: UUID) -> Iterator[None]:
    """What cannot be told of one job must not keep the news of others back."""
    try:
        # A job that is not kept, or was discarded since, has nothing to tell of.
        with suppress(TaskResultDoesNotExist):
            yield
    except Exception:
        logger.exception("Nobody could be told what became of job %s.", job_id)


def _read(claims: "models.QuerySet[ClaimedExecution]") -> list[HeldClaim]:
    """Without the jobs themselves, whose arguments may be large."""
    rows = list(claims.values_list(*_COLUMNS))
    jobs = Job.objects.using(claims.db).filter(pk__in=[row[0] for row in rows])
    paths = dict(jobs.values_list("pk", "task_path"))
    return [
        HeldClaim(
            job_id=job_id,
            token=token,
            process_id=process_id,
            attempts=attempts,
            task_path=paths.get(job_id, ""),
            started_at=created_at,
        )
        for job_id, token, process_id, attempts, created_at in rows
    ]


_COLUMNS = ("job_id", "token", "process_id", "attempts", "created_at")
