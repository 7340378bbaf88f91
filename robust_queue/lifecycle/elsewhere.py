"""Attempts made by another process, or that it died of: what to record and tell."""

from collections.abc import Callable
from datetime import datetime
from functools import cached_property

from django.utils import timezone

from robust_queue import policies, registry
from robust_queue.exceptions import (
    Discard,
    RobustQueueError,
    Snooze,
    TaskCancelled,
    TaskExpired,
    TaskTimeout,
)
from robust_queue.policies import Kind, Policy, Verdict
from robust_queue.stores.rows import Claim, Failed, Finished, Outcome, Snoozed

from . import announce, results
from .failure import describe
from .perform import Attempt, Performed


class IsolatedTaskError(RobustQueueError):
    """What a task has raised in a process of its own, in the words of that process."""


class PerformedElsewhere(Performed):
    """An attempt of which only the outcome is known here.

    What else is told of it is made for whoever asks, since that may take a query.
    """

    def __init__(
        self,
        claim: Claim,
        outcome: Outcome,
        error: BaseException | None = None,
        *,
        database: str,
    ) -> None:
        self._claim = claim
        self._database = database
        self.outcome = outcome
        self.error = error

    @property
    def is_heard(self) -> bool:
        # Asked in the main thread of a worker, so without what takes a query.
        task = registry.find(self._claim.task_path)
        is_from_backport = getattr(task, "from_backport", False)
        return self.error is not None or announce.is_heard(
            "task_finished", is_from_backport=is_from_backport
        )

    @cached_property
    def _attempt(self) -> Attempt:  # type: ignore[override]
        return _AttemptElsewhere(self._claim, self.outcome, database=self._database)


class _AttemptElsewhere(Attempt):
    def __init__(self, claim: Claim, outcome: Outcome, *, database: str) -> None:
        super().__init__(claim, database=database, worker_id=outcome.worker_id)
        self._started_at = outcome.started_at
        self.outcome = outcome
        if isinstance(outcome, Finished):
            self._returned = results.return_value(outcome.result)


Judge = Callable[..., Verdict]


def failed(
    claim: Claim,
    error: BaseException,
    *,
    database: str,
    worker_id: str,
    policy: Policy,
    started_at: datetime,
    judge: Judge = policies.judge,
) -> PerformedElsewhere:
    """An attempt that was ended from outside, for this reason.

    ``judge`` is ``policies.judge_crash`` if its process has died by itself.
    """
    now = timezone.now()
    verdict = judge(
        policy, error, attempts=claim.attempts, now=now, enqueued_at=claim.enqueued_at
    )
    failure = Failed(
        job_id=claim.job_id,
        token=claim.token,
        attempts=claim.attempts,
        worker_id=worker_id,
        started_at=started_at,
        finished_at=now,
        concurrency_key=claim.concurrency_key,
        unique_key=claim.unique_key,
        kind=verdict.kind.value,
        retry_at=verdict.retry_at,
        **describe(error),
    )
    return PerformedElsewhere(claim, failure, error, database=database)


def performed(
    claim: Claim, outcome: Outcome, *, said: str, database: str
) -> PerformedElsewhere:
    """An attempt that has come to this, and what its exception said if there was one.

    The exception itself has stayed where it was raised: another one stands for it.
    """
    error: BaseException | None = None
    match outcome:
        case Failed():
            error = _retold(outcome, said)
        case Snoozed(until=until):
            error = Snooze(said, until=until)
    return PerformedElsewhere(claim, outcome, error, database=database)


def _retold(failure: Failed, said: str) -> BaseException:
    own = _OWN.get(failure.kind)
    if own is not None:
        return own(said)
    name = failure.exception_class.removeprefix("builtins.")
    error = IsolatedTaskError(f"{name}: {failure.message}")
    error.add_note(failure.traceback)
    return error


_OWN: dict[str, type[BaseException]] = {
    Kind.TIMED_OUT: TaskTimeout,
    Kind.CANCELLED: TaskCancelled,
    Kind.DISCARDED: Discard,
    Kind.EXPIRED: TaskExpired,
}
