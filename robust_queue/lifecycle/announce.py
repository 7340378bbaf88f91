"""Django's three signals, and one for an attempt that another one follows.

Whoever listens cannot harm the job it hears of.
"""

import logging
from datetime import datetime

from robust_queue.compat import (
    AnyResult,
    BaseTaskBackend,
    signal_modules,
    signals,
    task_backends,
    task_logger,
)
from robust_queue.reports import report
from robust_queue.signals import (
    attempt_failed,
    attempt_snoozed,
    brief_ways,
    has_listeners,
    nothing_left_open,
    rests_while,
    tell,
)
from robust_queue.stores.rows import Claim, Failed, Finished
from robust_queue.tracebacks import in_one_line

SHOWN_LENGTH = 200


def is_heard(name: str, *, is_from_backport: bool = False) -> bool:
    """Might anybody listen to that signal of a task? Asked for every job."""
    if has_listeners(getattr(signals, name)):
        return True
    if not is_from_backport:
        return False
    modules = signal_modules(for_backport=True)
    return any(has_listeners(getattr(module, name)) for module in modules)


# Django's own, which only write lines.
rests_while(lambda: not task_logger.isEnabledFor(logging.DEBUG))(
    signals.log_task_enqueued
)
for _log in (signals.log_task_started, signals.log_task_finished):
    rests_while(lambda: not task_logger.isEnabledFor(logging.INFO))(_log)


def enqueued(result: AnyResult) -> None:
    """A job is stored, or part of a transaction that was committed."""
    _send("task_enqueued", result)


def started(result: AnyResult) -> None:
    """An attempt begins."""
    _send("task_started", result)


def finished(result: AnyResult, error: BaseException | None = None) -> None:
    """The outcome is recorded. For a failure the exception is in flight again.

    Django's log receiver, and exception trackers behind it, read it from there.
    """
    if error is None:
        _send("task_finished", result)
        return
    try:
        raise error  # noqa: TRY301 (in flight is where listeners look for it)
    except BaseException:
        _send("task_finished", result)


def is_told_briefly(claim: Claim, outcome: Finished) -> bool:
    """Tell of a success without a result, if nobody needs one."""
    ways = brief_ways(signals.task_finished)
    if ways is None:
        return False
    for tell_briefly in ways:
        try:
            tell_briefly(claim, outcome)
        except Exception as error:
            report(error, "the end of a job was told")
    return True


def retried(
    result: AnyResult, failure: Failed, error: BaseException | None = None
) -> None:
    """An attempt has failed and is recorded; the task is not finished."""
    with nothing_left_open("A receiver of attempt_failed"):
        tell(
            attempt_failed,
            _sender(result.backend),
            task_result=result,
            error=error,
            reason=_told(failure),
            duration=(failure.finished_at - failure.started_at).total_seconds(),
            retry_at=failure.retry_at,
        )


def snoozed(result: AnyResult, error: BaseException | None, until: datetime) -> None:
    """A task has asked for a later moment; that is recorded."""
    with nothing_left_open("A receiver of attempt_snoozed"):
        tell(
            attempt_snoozed,
            _sender(result.backend),
            task_result=result,
            reason=in_one_line(str(error or ""))[:SHOWN_LENGTH],
            until=until,
        )


def _told(failure: Failed) -> str:
    name = failure.exception_class.removeprefix("builtins.")
    return in_one_line(f"{name}: {failure.message}")[:SHOWN_LENGTH]


def _send(name: str, result: AnyResult) -> None:
    for_backport = getattr(result.task, "from_backport", False)
    sender = _sender(result.backend)
    with nothing_left_open(f"A receiver of {name}"):
        for module in signal_modules(for_backport=for_backport):
            tell(getattr(module, name), sender, task_result=result)


def _sender(alias: str) -> type[BaseTaskBackend]:
    if alias in task_backends.settings:
        return type(task_backends[alias])
    # The alias was taken out of TASKS while its jobs were still waiting.
    return BaseTaskBackend
