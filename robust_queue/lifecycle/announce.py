"""Django's three signals. Whoever listens cannot harm the job it hears of.

An attempt that another one follows has no signal of its own: it is told in the log.
"""

import logging

from robust_queue.compat import (
    AnyResult,
    BaseTaskBackend,
    signal_modules,
    task_backends,
)
from robust_queue.stores.rows import Failed

logger = logging.getLogger("robust_queue")

SHOWN_LENGTH = 200


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


def retried(result: AnyResult, failure: Failed) -> None:
    """An attempt has failed and is recorded; the task is not finished."""
    logger.info(
        "Job %s (%s): attempt %d of %s failed with %s; it is tried again at %s.",
        failure.job_id,
        result.task.module_path,
        failure.attempts,
        getattr(result.task, "max_attempts", None) or "?",
        _in_one_line(failure),
        failure.retry_at,
    )


def _in_one_line(failure: Failed) -> str:
    message = " ".join(failure.message.split())
    return f"{failure.exception_class}: {message}"[:SHOWN_LENGTH]


def _send(name: str, result: AnyResult) -> None:
    for_backport = getattr(result.task, "from_backport", False)
    for module in signal_modules(for_backport=for_backport):
        getattr(module, name).send_robust(_sender(result.backend), task_result=result)


def _sender(alias: str) -> type[BaseTaskBackend]:
    if alias in task_backends.settings:
        return type(task_backends[alias])
    # The alias was taken out of TASKS while its jobs were still waiting.
    return BaseTaskBackend
