"""Signals in, lines out: one line for each thing that happens to jobs.

They go to the logger of Django's tasks framework, where mails to admins and exception
trackers hang. Every other line goes to ``robust_queue``.
"""

import logging
import sys
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

from django.dispatch import receiver

from robust_queue import registry
from robust_queue.compat import (
    AnyResult,
    AnyTask,
    TaskResult,
    TaskResultStatus,
    signal_modules,
    signals,
    task_logger,
)
from robust_queue.exceptions import Discard, TaskCancelled, TaskExpired
from robust_queue.signals import (
    attempt_failed,
    attempt_snoozed,
    rests_while,
    told_briefly,
)
from robust_queue.stores.rows import Claim, Finished
from robust_queue.tracebacks import in_one_line, of_task

SHOWN_LENGTH = 200

_JOB = "(job %s, queue %s, attempt %s)"
_STARTED = f"%s started after waiting %s {_JOB}"
_SUCCEEDED = f"%s succeeded in %s after waiting %s {_JOB}"
_FAILED = f"%s failed with %s in %s after waiting %s {_JOB}"
_ENDED = f"%s ended with %s after waiting %s {_JOB}"
_SNOOZED = f"%s is put off until %s%s {_JOB}"
_RETRIED = f"%s failed with %s in %s after waiting %s; next attempt at %s {_JOB}"


def take_over() -> None:
    """Write about tasks that start and finish in place of Django, which says less.

    To be called in processes that run the queue. To call it again changes nothing.
    """
    for module in signal_modules(for_backport=True):
        module.task_started.disconnect(module.log_task_started)
        module.task_finished.disconnect(module.log_task_finished)
        if module is not signals:
            _leave_its_own_to(module)
    signals.task_started.connect(log_task_started)
    signals.task_finished.connect(log_task_finished)


def _leave_its_own_to(backport: Any) -> None:
    """Tasks that run in a backend of the backport are heard of there alone."""
    for signal, log in (
        (backport.task_started, backport.log_task_started),
        (backport.task_finished, backport.log_task_finished),
    ):
        # Of the tasks of this queue it never has anything to say.
        receive = rests_while(lambda: True)(_of_its_own(log))
        signal.connect(receive, weak=False, dispatch_uid=__name__)


def _of_its_own(log: Callable[..., None]) -> Callable[..., None]:
    @wraps(log)
    def receive(sender: type, *, task_result: Any, **kwargs: Any) -> None:
        # Django's result: it was announced by both frameworks.
        if not isinstance(task_result, TaskResult):
            log(sender, task_result=task_result, **kwargs)

    return receive


# ── Jobs ───────────────────────────────────────────────────────────────────────


@rests_while(lambda: not task_logger.isEnabledFor(logging.DEBUG))
def log_task_started(sender: type, *, task_result: AnyResult, **kwargs: Any) -> None:
    # Asked first, here and below: most of the time nobody reads it, and it is not free.
    if task_logger.isEnabledFor(logging.DEBUG):
        facts = _facts(task_result)
        task_logger.debug(
            _STARTED,
            facts["task"],
            _in_words(facts["wait"]),
            *_job(task_result),
            extra=facts,
        )


def log_success(claim: Claim, outcome: Finished) -> None:
    """Write the line of a first attempt that has succeeded."""
    due = max(claim.enqueued_at, claim.run_after or claim.enqueued_at)
    wait = max((outcome.started_at - due).total_seconds(), 0.0)
    duration = (outcome.finished_at - outcome.started_at).total_seconds()
    facts = {
        "job_id": str(claim.job_id),
        "task": claim.task_path,
        "queue": claim.queue_name,
        "attempt": claim.attempts,
        "wait": wait,
        "duration": duration,
    }
    _log_success(facts, _counted(claim.attempts, registry.find(claim.task_path)))


def _log_success(facts: dict[str, Any], attempt: str) -> None:
    task_logger.info(
        _SUCCEEDED,
        facts["task"],
        _in_words(facts["duration"]),
        _in_words(facts["wait"]),
        facts["job_id"],
        facts["queue"],
        attempt,
        extra=facts,
    )


# A failure wakes everybody.
@told_briefly(log_success)
@rests_while(lambda: not task_logger.isEnabledFor(logging.INFO))
def log_task_finished(sender: type, *, task_result: AnyResult, **kwargs: Any) -> None:
    if task_result.status == TaskResultStatus.FAILED:
        _log_failure(task_result)
    elif task_logger.isEnabledFor(logging.INFO):
        facts = _facts(task_result, duration=_duration(task_result))
        _log_success(facts, _counted(task_result.attempts, task_result.task))


def _log_wanted_end(result: AnyResult) -> None:
    """A job that was cancelled, discarded or too late: nobody needs to look at it."""
    facts = _facts(result, duration=_duration(result))
    task_logger.info(
        _ENDED,
        facts["task"],
        _reason(result),
        _in_words(facts["wait"]),
        *_job(result),
        extra=facts,
    )


@receiver(attempt_snoozed)
def log_attempt_snoozed(
    sender: type,
    *,
    task_result: AnyResult,
    reason: str,
    until: datetime,
    **kwargs: Any,
) -> None:
    if task_logger.isEnabledFor(logging.INFO):
        facts = _facts(task_result)
        task_logger.info(
            _SNOOZED,
            facts["task"],
            until.isoformat(" ", "seconds"),
            f": {reason}" if reason else "",
            *_job(task_result),
            extra=facts,
        )


def _log_failure(result: AnyResult) -> None:
    if isinstance(sys.exception(), _WANTED):
        _log_wanted_end(result)
        return
    if not task_logger.isEnabledFor(logging.ERROR):
        return
    facts = _facts(result, duration=_duration(result))
    task_logger.error(
        _FAILED,
        facts["task"],
        _reason(result),
        _in_words(facts["duration"]),
        _in_words(facts["wait"]),
        *_job(result),
        extra=facts,
        exc_info=_in_flight(),
    )


@receiver(attempt_failed)
def log_attempt_failed(
    sender: type,
    *,
    task_result: AnyResult,
    error: BaseException | None,
    reason: str,
    duration: float,
    retry_at: datetime,
    **kwargs: Any,
) -> None:
    if not task_logger.isEnabledFor(logging.WARNING):
        return
    facts = _facts(task_result, duration=duration)
    task_logger.warning(
        _RETRIED,
        facts["task"],
        reason,
        _in_words(duration),
        _in_words(facts["wait"]),
        retry_at.isoformat(" ", "seconds"),
        *_job(task_result),
        extra=facts,
        # The error is kept with the attempt; its traceback is for developers.
        exc_info=error if task_logger.isEnabledFor(logging.DEBUG) else None,
    )


def _facts(result: AnyResult, **more: float | None) -> dict[str, Any]:
    """What formatters find on the record."""
    return {
        "job_id": result.id,
        "task": result.task.module_path,
        "queue": result.task.queue_name,
        "attempt": result.attempts,
        "wait": _wait(result),
        **more,
    }


_WANTED = (Discard, TaskCancelled, TaskExpired)


def _job(result: AnyResult) -> tuple[str, str, str]:
    return result.id, result.task.queue_name, _counted(result.attempts, result.task)


def _counted(attempt: int, task: AnyTask | None) -> str:
    limit = getattr(task, "max_attempts", None)
    return f"{attempt} of {limit}" if limit and limit > 1 else str(attempt)


def _wait(result: AnyResult) -> float | None:
    """Seconds from when it could have begun to when this attempt did."""
    due, after = result.enqueued_at, result.task.run_after
    if due is not None and after is not None:
        due = max(due, after)
    # Never negative, though clocks of hosts differ.
    waited = _seconds(due, result.last_attempted_at)
    return None if waited is None else max(waited, 0.0)


def _duration(result: AnyResult) -> float | None:
    return _seconds(result.last_attempted_at, result.finished_at)


def _seconds(since: datetime | None, until: datetime | None) -> float | None:
    if since is None or until is None:
        return None
    return (until - since).total_seconds()


def _reason(result: AnyResult) -> str:
    error = sys.exception()
    if error is None:
        known = [each.exception_class_path for each in result.errors[-1:]]
        return "".join(known).removeprefix("builtins.") or "an unknown error"
    try:
        message = in_one_line(str(error))
    except Exception:  # its __str__ may raise anything
        message = ""
    kind = type(error)
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return f"{name}: {message}"[:SHOWN_LENGTH] if message else name


def _in_flight() -> tuple[Any, ...] | None:
    """The error that is announced, as far as its task has to do with it."""
    error = sys.exception()
    return (type(error), error, of_task(error)) if error else None


def _in_words(seconds: float | None) -> str:
    """A duration as short as it is still exact enough: 34 ms, 1.2 s, 15 min, 3.5 h."""
    if seconds is None:
        return "an unknown time"
    for unit, length, limit in (("ms", 0.001, 1), ("s", 1, 100), ("min", 60, 6000)):
        if seconds < limit:
            return f"{seconds / length:.{1 if unit == 's' else 0}f} {unit}"
    return f"{seconds / 3600:.1f} h"
