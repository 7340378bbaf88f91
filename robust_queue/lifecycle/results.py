"""Where a job stands, told as Django's TaskResult."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from typing import Any
from uuid import UUID

from robust_queue import registry
from robust_queue.arguments import load_result, plain_call, plain_result
from robust_queue.compat import (
    AnyResult,
    AnyTask,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
)
from robust_queue.declaration import RobustTask
from robust_queue.exceptions import DeserializationError, UnknownTaskError
from robust_queue.models import Attempt, Job, Process
from robust_queue.stores.rows import Claim, Failed, Finished, Outcome, Snoozed

_STATUSES = {
    "claimed": TaskResultStatus.RUNNING,
    "failed": TaskResultStatus.FAILED,
    "finished": TaskResultStatus.SUCCESSFUL,
}


def get_result(database: str, result_id: object) -> AnyResult:
    """The result of that id, read where it was written."""
    try:
        job_id = UUID(str(result_id))
        job = Job.objects.using(database).with_state().get(pk=job_id)
    except (ValueError, Job.DoesNotExist):
        raise TaskResultDoesNotExist(result_id) from None
    return result_of(job)


def result_of(job: Job) -> AnyResult:
    """A stored job as a result, whatever has become of its task since."""
    earlier = earlier_attempts(str(job._state.db), job.id)
    latest: Any = getattr(job, f"{job.state}_execution", None)
    result = _waiting(job, earlier)
    match job.state:
        case "claimed":
            _show_attempt(result, _worker_of(job), latest.created_at)
        case "finished" | "failed":
            if latest.worker_id:  # else it was cancelled while it waited
                _show_attempt(result, latest.worker_id, latest.started_at)
            _show(result, "finished_at", latest.finished_at)
    if job.state == "failed":
        result.errors.append(error_of(latest))
    if job.state == "finished":
        _show(result, "_return_value", return_value(latest.result))
    return result


def running(
    claim: Claim, earlier: Sequence[Attempt], *, started_at: datetime, worker_id: str
) -> AnyResult:
    """A claim whose attempt has begun, as a result."""
    args, kwargs = shown_call(claim.arguments)
    return TaskResult(
        task=restored_task(
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
        errors=[error_of(attempt) for attempt in earlier],
        worker_ids=[*workers_of(earlier), worker_id],
    )


def conclude(
    result: AnyResult, outcome: Outcome, returned: Any, *, earlier: int
) -> None:
    """Show in a result that was running what has become of it.

    Once more if that changes: a task that has returned may have been too late.
    """
    match outcome:
        case Finished() as end:
            _show(result, "_return_value", returned)
            _show(result, "status", TaskResultStatus.SUCCESSFUL)
            _show(result, "finished_at", end.finished_at)
        case Failed(retry_at=None) as end:
            result.errors[earlier:] = [error_of(end)]
            _show(result, "status", TaskResultStatus.FAILED)
            _show(result, "finished_at", end.finished_at)
        case Failed() as end:
            # The attempt is over, the task is not.
            result.errors[earlier:] = [error_of(end)]
            _show(result, "status", TaskResultStatus.READY)
        case Snoozed():
            _show(result, "status", TaskResultStatus.READY)


def show_failure(result: AnyResult, failure: Any) -> None:
    """Show in the result of a job that has never run that it has failed."""
    result.errors.append(error_of(failure))
    _show(result, "status", TaskResultStatus.FAILED)
    _show(result, "finished_at", failure.finished_at)


def earlier_attempts(database: str, job_id: UUID) -> Sequence[Attempt]:
    """The attempts before the latest one, oldest first."""
    return list(
        Attempt.objects.using(database).filter(job_id=job_id).order_by("attempts")
    )


def shown_call(arguments: str) -> tuple[list[Any], dict[str, Any]]:
    """The stored arguments for people to see; none if they cannot be read at all."""
    try:
        return plain_call(arguments)
    except DeserializationError:
        return [], {}


def error_of(failure: Any) -> TaskError:
    """A stored failure as Django shows it."""
    return TaskError(
        exception_class_path=failure.exception_class, traceback=failure.traceback
    )


def restored_task(path: str, **stored: Any) -> AnyTask:
    """The task of a job as it was enqueued, even if it could not be enqueued now.

    Its queue may have been taken out of QUEUES, its alias out of TASKS, its function
    renamed: none of that may make a stored job unreadable.
    """
    declared = registry.find(path) or _stand_in(path)
    if all(getattr(declared, name) == value for name, value in stored.items()):
        return declared
    task = object.__new__(type(declared))
    for field in fields(declared):
        value = stored.get(field.name, getattr(declared, field.name))
        object.__setattr__(task, field.name, value)
    return task


def _stand_in(path: str) -> AnyTask:
    """A task that can be shown but not run."""

    def unavailable(*args: Any, **kwargs: Any) -> None:
        raise UnknownTaskError(f"No task {path!r} is declared in this process.")

    unavailable.__module__, _, name = path.rpartition(".")
    unavailable.__name__ = unavailable.__qualname__ = name
    task: AnyTask = object.__new__(RobustTask)
    for field in fields(RobustTask):
        value = unavailable if field.name == "func" else field.default
        object.__setattr__(task, field.name, value)
    return task


def _waiting(job: Job, earlier: Sequence[Attempt]) -> AnyResult:
    args, kwargs = shown_call(job.arguments)
    return TaskResult(
        task=restored_task(
            job.task_path,
            backend=job.backend,
            priority=job.priority,
            queue_name=job.queue_name,
            run_after=job.run_after,
        ),
        id=str(job.id),
        status=_STATUSES.get(job.state, TaskResultStatus.READY),
        enqueued_at=job.enqueued_at,
        started_at=_first(attempt.started_at for attempt in earlier),
        finished_at=None,
        last_attempted_at=_first(attempt.started_at for attempt in reversed(earlier)),
        args=args,
        kwargs=kwargs,
        backend=job.backend,
        errors=[error_of(attempt) for attempt in earlier],
        worker_ids=workers_of(earlier),
    )


def workers_of(attempts: Iterable[Attempt]) -> list[str]:
    """Who made these. A cancellation that an operator has taken back was nobody's."""
    return [attempt.worker_id for attempt in attempts if attempt.worker_id]


def _first(moments: Iterable[datetime]) -> datetime | None:
    return next(iter(moments), None)


def _show_attempt(result: AnyResult, worker_id: str, started_at: datetime) -> None:
    result.worker_ids.append(worker_id)
    _show(result, "last_attempted_at", started_at)
    if result.started_at is None:
        _show(result, "started_at", started_at)


def _show(result: AnyResult, name: str, value: Any) -> None:
    object.__setattr__(result, name, value)


def _worker_of(job: Job) -> str:
    process_id = job.claimed_execution.process_id
    names = Process.objects.using(job._state.db).filter(pk=process_id)
    return names.values_list("name", flat=True).first() or str(process_id)


def return_value(text: str) -> Any:
    """What a task has returned, as far as it can still be read."""
    for read in (load_result, plain_result):
        # A model in it may be gone, or a class: what can still be shown is shown.
        with suppress(DeserializationError):
            return read(text)
    return text
