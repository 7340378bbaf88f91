"""The forms of a line: for people, for machines, and for formatters of others."""

import json
import logging
import os
import sys
from collections.abc import Iterable
from copy import copy
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from robust_queue.context import CurrentJob, current_job

from .household import name_of_this_process

JOB_FIELDS = ("job_id", "task", "queue", "attempt")
NONE = "-"  # what stands in these fields outside of jobs

# What every record has, and nobody has put there.
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}

_COLOURS = {
    logging.DEBUG: "\x1b[2m",
    logging.WARNING: "\x1b[33m",
    logging.ERROR: "\x1b[31m",
    logging.CRITICAL: "\x1b[1;31m",
}
_PLAIN = "\x1b[0m"

Style = Literal["%", "{", "$"]


class JobFilter(logging.Filter):
    """Puts ``job_id``, ``task``, ``queue`` and ``attempt`` on every record.

    They are those of the job that runs where the record was made, or ``-``.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in _fields_of(current_job()).items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


class LineFormatter(logging.Formatter):
    """Time, level and message, coloured by level where a terminal shows it."""

    default_msec_format = "%s.%03d"

    def __init__(
        self,
        fmt: str | None = None,
        datefmt: str | None = None,
        style: Style = "%",
        *,
        stream: TextIO | None = None,
    ) -> None:
        super().__init__(fmt or "%(asctime)s %(levelname)s %(message)s", datefmt, style)
        self._is_coloured = _shows_colours(stream or sys.stderr)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        colour = _COLOURS.get(record.levelno)
        if self._is_coloured and colour:
            record = copy(record)  # other handlers get it too
            record.levelname = f"{colour}{record.levelname}{_PLAIN}"
        return super().formatMessage(record)


class JSONFormatter(logging.Formatter):
    """One object in one line, with everything that a record has been given.

    Whatever that is: a value that JSON does not know is written as text.
    """

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": _moment(record),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
            "pid": record.process,
            "process": name_of_this_process(),
            **_job_of(record),
            "exception": self._exception(record),
            "stack": record.stack_info,
        }
        told = {name: value for name, value in told.items() if value is not None}
        return _dumped(told | _given(record, besides=told))

    def _exception(self, record: logging.LogRecord) -> dict[str, str] | None:
        if not record.exc_info or record.exc_info[1] is None:
            return None
        error = record.exc_info[1]
        kind = type(error)
        return {
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "message": _as_text(error),
            "traceback": self._traceback(record),
        }

    def _traceback(self, record: logging.LogRecord) -> str:
        try:
            return self.formatException(record.exc_info)  # type: ignore[arg-type]
        except Exception:
            return "It cannot be shown."


def _shows_colours(stream: TextIO) -> bool:
    is_terminal = getattr(stream, "isatty", lambda: False)
    return not os.environ.get("NO_COLOR") and is_terminal()


def _fields_of(job: CurrentJob | None) -> dict[str, Any]:
    if job is None:
        return dict.fromkeys(JOB_FIELDS, NONE)
    values = (job.id, job.task, job.queue, job.attempt)
    return dict(zip(JOB_FIELDS, values, strict=True))


def _job_of(record: logging.LogRecord) -> dict[str, Any]:
    """The job that the record is about, else the one in which it was made."""
    if getattr(record, "job_id", NONE) != NONE:
        return {name: getattr(record, name, None) for name in JOB_FIELDS}
    job = current_job()
    return _fields_of(job) if job else {}


def _given(record: logging.LogRecord, besides: Iterable[str]) -> dict[str, Any]:
    known = _STANDARD.union(JOB_FIELDS, besides)
    return {name: it for name, it in vars(record).items() if name not in known}


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(
        timespec="milliseconds"
    )


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # arguments that do not fit
        return f"{_as_text(record.msg)} {_as_text(record.args)}"


def _dumped(told: dict[str, Any]) -> str:
    try:
        return json.dumps(told, default=_as_text, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # Something in one of them: a cycle, a key that is no text, a NaN.
        return json.dumps({_as_text(n): _plain(value) for n, value in told.items()})


def _plain(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return _as_text(value)
    return value


def _as_text(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__qualname__} that cannot be shown>"
