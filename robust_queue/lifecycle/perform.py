"""A claim ──▶ user code ──▶ an outcome. The one place where tasks are called."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, tzinfo
from traceback import clear_frames
from typing import Any

from django.utils import timezone, translation

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
                announce.retried(self.result, failure)
            case _:
                announce.finished(self.result, self.error)


def perform(claim: Claim, *, database: str, worker_id: str) -> Performed:
    """Run a claimed job. Whatever the task raises becomes its failure.

    An error before the task began is raised: the claim can be given back. From the
    moment the task could have begun, everything is an outcome.
    """
    started_at = timezone.now()
    result = _running(claim, database, worker_id, started_at)
    try:
        returned, text = _run(claim, result)
        return _finished(claim, result, returned, text)
    except BaseException as error:
        _make_room(error)
        return _failed(claim, result, error)


def _make_room(error: BaseException) -> None:
    """What a task has used up is freed with its frames, which its error holds."""
    if isinstance(error, MemoryError):
        clear_frames(error.__traceback__)


def _run(claim: Claim, result: AnyResult) -> tuple[Any, str]:
    task = registry.resolve(claim.task_path)
    args, kwargs = load_call(claim.arguments)
    announce.started(result)
    context = [context_of(task, result)] if task.takes_context else []
    with _locale_kept(), transactions.closed_behind(task.module_path):
        returned = task.call(*context, *args, **kwargs)
    return returned, _stored(returned, options_of(claim.backend))


@contextmanager
def _locale_kept() -> Iterator[None]:
    """The language and time zone that a task activates are its own, not the next's."""
    language, zone = translation.get_language(), timezone.get_current_timezone()
    try:
        yield
    finally:
        if translation.get_language() != language:
            _restore_language(language)
        if timezone.get_current_timezone() != zone:
            _restore_zone(zone)


def _restore_language(language: str | None) -> None:
    # Most had activated none, and shall go on to follow the settings.
    translation.deactivate()
    if language is not None and translation.get_language() != language:
        translation.activate(language)


def _restore_zone(zone: tzinfo) -> None:
    timezone.deactivate()  # likewise
    if timezone.get_current_timezone() != zone:
        timezone.activate(zone)


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
