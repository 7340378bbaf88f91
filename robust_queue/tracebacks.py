"""Tracebacks as people want to see them: from where the code of the task begins."""

import asyncio
import concurrent.futures
import os
from types import TracebackType

import asgiref
import django

import robust_queue


def of_task(error: BaseException) -> TracebackType | None:
    """Where an error came from, without the frames of those who called the task.

    All of it if there is nothing else: the error is then not the task's.
    """
    trace = error.__traceback__
    while trace is not None and _belongs_to_caller(trace):
        trace = trace.tb_next
    return trace or error.__traceback__


def _belongs_to_caller(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(_CALLERS)


def _folder(file: str, *below: str) -> str:
    return os.path.join(os.path.dirname(file), *below, "")  # noqa: PTH118, PTH120


_CALLERS = (
    _folder(robust_queue.__file__),
    _folder(django.__file__, "tasks"),
    os.path.normpath(_folder(django.__file__, os.pardir, "django_tasks")) + os.sep,
    # How coroutines are awaited where there is no event loop.
    _folder(asgiref.__file__),
    _folder(asyncio.__file__),
    _folder(concurrent.futures.__file__),
)


def in_one_line(text: str) -> str:
    """As it may stand in a log: nothing in it looks like a line of others."""
    if not text.isprintable():
        text = "".join(each if each.isprintable() else " " for each in text)
    return " ".join(text.split())
