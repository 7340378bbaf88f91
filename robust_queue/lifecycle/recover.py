"""Claims of a process that is gone ──▶ ready, failed, or what they had become."""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import models, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from robust_queue import policies
from robust_queue.exceptions import TaskTimeout
from robust_queue.models import ClaimedExecution, IsolatedRun, Job, Process
from robust_queue.policies import OnCrash
from robust_queue.stores.rows import Failed, Outcome

from . import announce, results
from .failure import describe
from .jobless import without_jobless
from .news import news_of
from .policy import policy_for
from .settle import settle

logger = logging.getLogger("robust_queue")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldClaim:
    """A claim as the table tells of it; ``task_path`` is empty if its job is gone."""

    job_id: UUID
    token: UUID
    process_id: UUID
    attempts: int
    queue_name: str
    task_path: str
    backend: str
    enqueued_at: datetime | None
    concurrency_key: str
    unique_key: str
    started_at: datetime


def claims_of(database: str, process_id: UUID) -> list[HeldClaim]:
    """What a process holds, whatever it may know of it."""
    return claims_among(
        ClaimedExecution.objects.using(database).filter(process_id=process_id)
    )


def claims_of_nobody(database: str, *, limit: int) -> list[HeldClaim]:
    """Claims whose process is not known: it was registered before it claimed them."""
    process = Process.objects.filter(pk=OuterRef("process_id"))
    claims = ClaimedExecution.objects.using(database).filter(~Exists(process))
    return claims_among(claims.order_by("job_id")[:limit])


def claims_among(claims: "models.QuerySet[ClaimedExecution]") -> list[HeldClaim]:
    """As their rows tell of them, without the jobs, whose arguments may be large."""
    rows = list(claims.values_list(*_COLUMNS, "created_at"))
    jobs = Job.objects.using(claims.db).filter(pk__in=[row[0] for row in rows])
    facts = {job_id: rest for job_id, *rest in jobs.values_list("pk", *_OF_JOB)}
    return [
        HeldClaim(
            **dict(zip(_COLUMNS, row[:-1], strict=True)),
            **dict(zip(_OF_JOB, facts.get(row[0], _OF_NONE), strict=True)),
            started_at=row[-1],
        )
        for row in rows
    ]


def record(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    """Record what a process that died had done, and had no time to settle."""
    held = settle(database, outcomes)
    _after_commit(database, partial(_tell_of_ends, database, held))
    return held


def give_up(
    database: str,
    claims: Sequence[HeldClaim],
    error: Exception,
    *,
    worker_id: str,
    otherwise: OnCrash | None = None,
) -> set[UUID]:
    """End attempts whose process died as their tasks' crash policy says.

    They fail, or are tried again after their backoff; ``otherwise`` is what holds where
    nothing is said. Returns whose claims were still held: somebody else may have
    recovered them meanwhile.
    """
    whole = without_jobless(database, claims)
    outcomes = [_crash(each, error, worker_id, otherwise) for each in whole]
    held = settle(database, outcomes)
    end_runs(database, held)
    told = [each for each in outcomes if each.job_id in held]
    _after_commit(database, partial(_tell, database, told, error))
    return held


def time_out(
    database: str, claims: Sequence[HeldClaim], *, worker_id: str
) -> set[UUID]:
    """End attempts that took longer than they may, and with them their process."""
    error = TaskTimeout(
        "It took longer than its timeout and did not react: its process was ended."
    )
    return give_up(database, claims, error, worker_id=worker_id)


def end_runs(database: str, job_ids: Collection[UUID]) -> None:
    """Tasks that ran in processes of their own have died with their worker."""
    if job_ids:
        runs = IsolatedRun.objects.using(database).filter(job_id__in=job_ids)
        words = "ended together with its worker"
        runs.filter(finished_at=None).update(finished_at=timezone.now(), exit=words)


def _crash(
    claim: HeldClaim, error: Exception, worker_id: str, otherwise: OnCrash | None
) -> Failed:
    now, policy = timezone.now(), policy_for(claim)
    if policy.on_crash is None and otherwise is not None:
        policy = replace(policy, on_crash=otherwise)
    is_timeout = isinstance(error, TaskTimeout)
    judge = policies.judge if is_timeout else policies.judge_crash
    verdict = judge(
        policy,
        error,
        attempts=claim.attempts,
        now=now,
        enqueued_at=claim.enqueued_at,
        who=claim.task_path,
    )
    return Failed(
        job_id=claim.job_id,
        token=claim.token,
        attempts=claim.attempts,
        worker_id=worker_id,
        started_at=claim.started_at,
        finished_at=now,
        concurrency_key=claim.concurrency_key,
        unique_key=claim.unique_key,
        kind=verdict.kind.value,
        retry_at=verdict.retry_at,
        **describe(error),
    )


def _after_commit(database: str, telling: Callable[[], None]) -> None:
    # Whatever becomes of the news, the jobs are recovered.
    transaction.on_commit(telling, using=database, robust=True)


def _tell_of_ends(database: str, ended: Iterable[UUID]) -> None:
    for job_id in ended:
        logger.info("Job %s had ended before its process did.", job_id)
        with news_of(job_id):
            result = results.get_result(database, job_id)
            if result.is_finished:
                announce.finished(result)


def _tell(database: str, outcomes: Sequence[Failed], error: Exception) -> None:
    for outcome in outcomes:
        with news_of(outcome.job_id):
            result = results.get_result(database, outcome.job_id)
            if outcome.retry_at is None:
                announce.finished(result, error)
            else:
                announce.retried(result, outcome, error)


_COLUMNS = ("job_id", "token", "process_id", "attempts", "queue_name")
_OF_JOB = ("task_path", "backend", "enqueued_at", "concurrency_key", "unique_key")
_OF_NONE = ("", "", None, "", "")
