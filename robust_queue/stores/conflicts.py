"""Transactions that lost a race with another one, and may simply be tried again."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import Error, OperationalError, connections

from robust_queue.exceptions import EnqueueError

T = TypeVar("T")

ATTEMPTS = 10
PATIENCE = 10.0  # seconds: a lock wait may take as long as the server allows
_FIRST_PAUSE = 0.005
_POSTGRESQL = {"40001", "40P01"}  # serialisation failure, deadlock
_MYSQL = {1205, 1213}  # lock wait timeout, deadlock
_SQLITE = {5, 6}  # SQLITE_BUSY and SQLITE_LOCKED, without their extensions


def retried(alias: str, change: Callable[[], T]) -> T:
    """Run a whole transaction, again if it lost against another one.

    Never inside a transaction of the caller: the database has given that one up, or
    half of it, and only the caller can begin it anew.
    """
    if _is_the_callers(alias):
        return change()
    patience_ends = time.monotonic() + PATIENCE
    for attempt in range(ATTEMPTS - 1):
        try:
            return change()
        except (OperationalError, EnqueueError) as error:
            # Of an enqueue that is part of it, it is told why that has failed.
            cause = error.__cause__ if isinstance(error, EnqueueError) else error
            is_passing = isinstance(cause, OperationalError) and is_conflict(cause)
            if not is_passing or time.monotonic() > patience_ends:
                raise
            _pause(attempt)
    return change()


def _is_the_callers(alias: str) -> bool:
    connection = connections[alias]
    return connection.in_atomic_block or not connection.get_autocommit()


def is_conflict(error: Error) -> bool:
    """Was this a deadlock, a serialisation failure or a lock that was not free?"""
    cause = error.__cause__
    return (
        getattr(cause, "sqlstate", None) in _POSTGRESQL
        or (error.args[:1] and error.args[0] in _MYSQL)
        or getattr(cause, "sqlite_errorcode", 0) & 0xFF in _SQLITE
    )


def _pause(attempt: int) -> None:
    # With jitter, lest the same two transactions meet again.
    time.sleep(_FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311
