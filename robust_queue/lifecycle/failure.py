"""Exceptions as they are kept: class, message and traceback, bounded and storable."""

from traceback import format_exception
from typing import Any

from robust_queue.stores.rows import Failed, Outcome
from robust_queue.tracebacks import of_task

CLASS_LENGTH = 255
MESSAGE_LENGTH = 4_096
TRACEBACK_LENGTH = 65_536
PLAIN_LENGTH = 4_096


def describe(error: BaseException) -> dict[str, Any]:
    """The columns that keep an exception."""
    kind = type(error)
    path = f"{kind.__module__}.{kind.__qualname__}"
    return {
        "exception_class": storable(path)[:CLASS_LENGTH],
        "message": storable(message_of(error))[:MESSAGE_LENGTH],
        "traceback": shortened(storable(_formatted(error))),
    }


def words_of(error: BaseException) -> list[str]:
    """The same in the order of the columns."""
    told = describe(error)
    return [told[name] for name in _WORDS]


def failed_to_record(outcome: Outcome, error: BaseException) -> Failed:
    """What becomes of an outcome that the database refuses: plain, and short.

    A failure is still told in its own words, as far as they go; a result is lost.
    """
    told = outcome if isinstance(outcome, Failed) else None
    words = {name: getattr(told, name) for name in _WORDS} if told else describe(error)
    return Failed(
        job_id=outcome.job_id,
        token=outcome.token,
        attempts=outcome.attempts,
        worker_id=outcome.worker_id,
        started_at=outcome.started_at,
        finished_at=outcome.finished_at,
        concurrency_key=outcome.concurrency_key,
        unique_key=outcome.unique_key,
        retry_at=told.retry_at if told else None,
        kind=told.kind if told else "",
        exception_class=_plain(words["exception_class"])[:CLASS_LENGTH],
        message=_plain(words["message"]),
        traceback=_plain(words["traceback"]),
    )


_WORDS = ("exception_class", "message", "traceback")


def _plain(text: str) -> str:
    """Something that every column of every server can hold."""
    ascii_only = text.encode("ascii", "backslashreplace").decode("ascii")
    return ascii_only.replace("\x00", "\\x00")[-PLAIN_LENGTH:]


def message_of(error: BaseException) -> str:
    """What an exception says, whatever it does when it is asked."""
    try:
        return str(error)
    except BaseException as broken:  # its __str__ may raise anything
        return f"<its message cannot be shown: {type(broken).__name__}>"


def _formatted(error: BaseException) -> str:
    try:
        return "".join(format_exception(type(error), error, of_task(error)))
    except BaseException as broken:  # its __str__ may raise anything
        return f"{type(error).__name__}: <cannot be shown: {type(broken).__name__}>\n"


def storable(text: str) -> str:
    """PostgreSQL holds neither NUL characters nor lone surrogates."""
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("\x00", "\\x00")


def shortened(text: str) -> str:
    """Both ends of a traceback matter: where it began and what was raised."""
    if len(text) <= TRACEBACK_LENGTH:
        return text
    half = TRACEBACK_LENGTH // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n… {left_out:,} characters left out …\n{text[-half:]}"
