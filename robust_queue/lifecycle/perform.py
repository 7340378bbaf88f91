"""A claim ──▶ user code ──▶ an outcome. The one place where tasks are called."""

from dataclasses import dataclass
from datetime import datetime
from traceback import clear_frames
from typing import Any

from django.utils import timezone

from robust_queue import policies, registry, transactions
from robust_queue.aliases import options_of
from robust_queue.arguments import dump_result, load_call
from robust_queue.compat import (
    AnyResult,
    TaskResult,
    TaskResultStatus,
    context_of,
)
from robust_queue.configuration import BackendOptions
from robust_queue.context import running
from robust_queue.exceptions import SerializationError
from robust_queue.stores.rows import Claim, Failed, Finished, Outcome

from . import announce, results
from .failure import describe


@dataclass(frozen=True, slots=True)
class Performed:
    """An attempt that was made: what to record, and what to tell when it is."""

    outcome: Outcome
    result: AnyResult
    error: BaseException | None = None

    def announce(self) -> None:
        """Tell the world. To be called by whoever has recorded the outcome."""
        match self.outcome:
            case Failed(retry_at=datetime()) as failure:
                announce.retried(self.result, failure, self.error)
            case _:
                announce.finished(self.result, self.error)


def perform(claim: Claim, *, database: str, worker_id: str) -> Performed:
    """Run a claimed job. Whatever the task raises becomes its failure.

    An error before the task began is raised: the claim can be given back. From the
    moment the task could have begun, everything is an outcome.
    """
    begun = begin(claim, database=database, worker_id=worker_id)
    return begun.run() if isinstance(begun, Attempt) else begun


def begin(claim: Claim, *, database: str, worker_id: str) -> "Attempt | Performed":
    """Do everything that comes before the call; a job that cannot be called has failed.

    An error of the queue itself is raised: the claim can be given back.
    """
    attempt = Attempt(claim, _running(claim, database, worker_id, timezone.now()))
    try:
        attempt.prepare()
    except BaseException as error:
        return attempt.failed(error)
    return attempt


class Attempt:
    """A job that has begun: to be run, once, in the one way or the other."""

    def __init__(self, claim: Claim, result: AnyResult) -> None:
        self.claim = claim
        self._result = result

    def prepare(self) -> None:
        """Find out what is to be called, and tell that it begins."""
        self._task = registry.resolve(self.claim.task_path)
        self._args, self._kwargs = load_call(self.claim.arguments)
        with running(self.claim):
            announce.started(self._result)
        if self._task.takes_context:
            self._args.insert(0, context_of(self._task, self._result))

    def run(self) -> Performed:
        """Call the task, whatever kind of function it is, and wait for its end."""
        try:
            with running(self.claim), transactions.closed_behind(self.claim.task_path):
                returned = self._task.call(*self._args, **self._kwargs)
            return self._finished(returned)
        except BaseException as error:
            return self.failed(error)

    async def run_async(self) -> Performed:
        """Await the task, which is a coroutine function, on the loop of the caller.

        Connections are none of its business: those that it uses are in other threads.
        """
        try:
            with running(self.claim):
                returned = await self._task.acall(*self._args, **self._kwargs)
            return self._finished(returned)
        except BaseException as error:
            return self.failed(error)

    def _finished(self, returned: Any) -> Performed:
        text = _stored(returned, options_of(self.claim.backend))
        return _finished(self.claim, self._result, returned, text)

    def failed(self, error: BaseException) -> Performed:
        """The attempt has come to this."""
        _make_room(error)
        return _failed(self.claim, self._result, error)


def _make_room(error: BaseException) -> None:
    """What a task has used up is freed with its frames, which its error holds."""
    if isinstance(error, MemoryError):
        clear_frames(error.__traceback__)


def _stored(returned: Any, options: BackendOptions) -> str:
    try:
        text = dump_result(returned)
    except SerializationError as error:
        # The contract asks for exactly this class.
        raise TypeError(str(error)) from None
    if len(text) > options.max_result_size:
        raise ValueError(
            f"The result takes {len(text):,} bytes, more than the "
            f"{options.max_result_size:,} allowed by MAX_RESULT_SIZE."
        )
    return text


def _running(
    claim: Claim, database: str, worker_id: str, started_at: datetime
) -> AnyResult:
    # The first attempt has none before it, which spares nearly every job a query.
    earlier = (
        results.earlier_attempts(database, claim.job_id) if claim.attempts > 1 else []
    )
    args, kwargs = results.shown_call(claim.arguments)
    return TaskResult(
        task=results.restored_task(
            claim.task_path,
            backend=claim.backend,
            priority=claim.priority,
            queue_name=claim.queue_name,
            run_after=claim.run_after,
        ),
        id=str(claim.job_id),
        status=TaskResultStatus.RUNNING,
        enqueued_at=claim.enqueued_at,
        started_at=earlier[0].started_at if earlier else started_at,
        finished_at=None,
        last_attempted_at=started_at,
        args=args,
        kwargs=kwargs,
        backend=claim.backend,
        errors=[results.error_of(attempt) for attempt in earlier],
        worker_ids=[*(attempt.worker_id for attempt in earlier), worker_id],
    )


def _finished(claim: Claim, result: AnyResult, returned: Any, text: str) -> Performed:
    _end(result, TaskResultStatus.SUCCESSFUL)
    object.__setattr__(result, "_return_value", returned)
    keep = options_of(claim.backend).preserve_finished_jobs
    return Performed(
        Finished(**_attempt(claim, result), result=text, keep=keep), result
    )


def _failed(claim: Claim, result: AnyResult, error: BaseException) -> Performed:
    _end(result, TaskResultStatus.FAILED)
    attempt = _attempt(claim, result)
    retry_at = _retry_at(claim, error, attempt["finished_at"])
    failure = Failed(**attempt, **describe(error), retry_at=retry_at)
    result.errors.append(results.error_of(failure))
    if failure.retry_at is not None:
        _reopen(result)
    return Performed(failure, result, error)


def _retry_at(
    claim: Claim, error: BaseException, finished_at: datetime
) -> datetime | None:
    task = registry.find(claim.task_path)
    return policies.retry_at(task, error, attempts=claim.attempts, now=finished_at)


def _end(result: AnyResult, status: TaskResultStatus) -> None:
    object.__setattr__(result, "finished_at", timezone.now())
    object.__setattr__(result, "status", status)


def _reopen(result: AnyResult) -> None:
    """The attempt is over, the task is not."""
    object.__setattr__(result, "finished_at", None)
    object.__setattr__(result, "status", TaskResultStatus.READY)


def _attempt(claim: Claim, result: AnyResult) -> dict[str, Any]:
    return {
        "job_id": claim.job_id,
        "token": claim.token,
        "attempts": claim.attempts,
        "worker_id": result.worker_ids[-1],
        "started_at": result.last_attempted_at,
        "finished_at": result.finished_at,
    }
