"""The caller's transactions: is one open, and what is to happen when it commits."""

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections, transaction

logger = logging.getLogger("robust_queue")


def is_open(alias: str) -> bool:
    """Has the caller begun a transaction on this database?

    Django's ``TestCase`` keeps one open around every test, which never commits. The
    code under test did not ask for it, so it does not count.
    """
    return any(
        not getattr(block, "_from_testcase", False)
        for block in connections[alias].atomic_blocks
    )


def first_open(aliases: Iterable[str]) -> str | None:
    """The first of these databases on which the caller's transaction is open."""
    return next((alias for alias in aliases if is_open(alias)), None)


def on_commit(alias: str, action: Callable[[], None]) -> None:
    """Do this when the caller's transaction on that database has committed.

    Before the hooks of everyone else: Django drops all hooks behind one that raises,
    and a job must not get lost because another app's hook failed. Nor may it be the
    other way round, so an error of the action is raised only where a hook that was
    registered just now would have had its turn.
    """
    if _is_inside_a_test(alias):
        # Never committed: tests pick the hooks that they run by their position.
        transaction.on_commit(action, using=alias)
        return
    first = _First(action)
    transaction.on_commit(first, using=alias)
    waiting = connections[alias].run_on_commit
    behind_ours = bisect_left(waiting, True, hi=len(waiting) - 1, key=_is_foreign)
    waiting.insert(behind_ours, waiting.pop())
    transaction.on_commit(first.report, using=alias)


@contextmanager
def closed_behind(what: str) -> Iterator[None]:
    """Whoever runs in this block must end the transactions that it begins.

    One that is left open would swallow everything that is written on its connection
    from then on. The connection is closed, which rolls it back, and an error says so.
    """
    before = set(_unfinished())
    try:
        yield
    finally:
        left = [alias for alias in _unfinished() if alias not in before]
        for alias in left:
            _abandon(alias)
    if left:
        raise RuntimeError(
            f"{what} left a transaction open on {', '.join(map(repr, left))}. "
            "It was rolled back."
        )


def _unfinished() -> Iterator[str]:
    for connection in connections.all(initialized_only=True):
        is_open = connection.in_atomic_block or not connection.autocommit
        if is_open and connection.connection is not None:
            yield connection.alias


def _abandon(alias: str) -> None:
    connection = connections[alias]
    # Else Django would keep the closed connection until the block is left.
    connection.in_atomic_block = False
    connection.close()


class _First:
    """A hook that goes before all others and reports its error in its own turn."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self.error: Exception | None = None

    def __call__(self) -> None:
        try:
            self.action()
        except Exception as error:
            # Logged too: a hook of someone else may raise before the report.
            logger.exception("What was to be done at the commit failed.")
            self.error = error

    def report(self) -> None:
        if self.error is not None:
            raise self.error


def _is_foreign(entry: tuple[Any, ...]) -> bool:
    return not isinstance(entry[1], _First)


def _is_inside_a_test(alias: str) -> bool:
    blocks = connections[alias].atomic_blocks
    return any(getattr(block, "_from_testcase", False) for block in blocks)
