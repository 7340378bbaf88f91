"""The caller's transactions: is one open, and what is to happen when it commits."""

import logging
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import Error, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

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


def is_inside_a_test(alias: str) -> bool:
    """Does a ``TestCase`` keep a transaction open here, which never commits?"""
    blocks = connections[alias].atomic_blocks
    return any(getattr(block, "_from_testcase", False) for block in blocks)


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
    if is_inside_a_test(alias):
        # Never committed: tests pick the hooks that they run by their position.
        transaction.on_commit(action, using=alias)
        return
    first = _First(action)
    transaction.on_commit(first, using=alias)
    waiting = connections[alias].run_on_commit
    behind_ours = bisect_left(waiting, True, hi=len(waiting) - 1, key=_is_foreign)
    waiting.insert(behind_ours, waiting.pop())
    transaction.on_commit(first.report, using=alias)


def connected() -> Sequence[BaseDatabaseWrapper]:
    """The connections of this thread that have been used.

    Asked several times for each job. So a thread that was told to keep account of them
    does not look for them.
    """
    account: list[BaseDatabaseWrapper] | None = getattr(_here, "account", None)
    return connections.all(initialized_only=True) if account is None else account


def keep_account() -> None:
    """From now on, know the connections of this thread, which has none yet."""
    _here.account = connections.all(initialized_only=True)


def _note(sender: object, connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    account = getattr(_here, "account", None)
    if account is not None and connection not in account:
        # One that was there under this name has been replaced.
        account[:] = [each for each in account if each.alias != connection.alias]
        account.append(connection)


_here = threading.local()
connection_created.connect(_note, dispatch_uid="robust_queue.transactions")


@contextmanager
def closed_behind(what: str) -> Iterator[None]:
    """Whoever runs in this block must end the transactions that it begins.

    One that is left open would swallow everything that is written on its connection
    from then on. It is rolled back, and an error says so.
    """
    before = depths()
    try:
        yield
    except BaseException:
        close_behind(what, before)
        raise
    if error := close_behind(what, before):
        raise error


def depths() -> dict[str, int]:
    """How many blocks are open on which connection of this thread."""
    return {each.alias: _depth(each) for each in connected()}


def close_behind(what: str, before: dict[str, int]) -> RuntimeError | None:
    """Roll back what was begun since, and return the error that says so."""
    left = [each for each in connected() if _depth(each) > before.get(each.alias, 0)]
    for connection in left:
        _roll_back(connection, before.get(connection.alias, 0))
    if not left:
        return None
    names = ", ".join(repr(each.alias) for each in left)
    return RuntimeError(
        f"{what} left a transaction open on {names}. It was rolled back."
    )


def _depth(connection: BaseDatabaseWrapper) -> int:
    """How many blocks are open; a transaction begun by hand counts as one."""
    return len(connection.atomic_blocks) + _is_by_hand(connection)


def _is_by_hand(connection: BaseDatabaseWrapper) -> bool:
    """Is autocommit off although neither a block nor DATABASES asks for it?"""
    return (
        connection.connection is not None
        and not connection.in_atomic_block
        and connection.autocommit != connection.settings_dict["AUTOCOMMIT"]
    )


def _roll_back(connection: BaseDatabaseWrapper, depth: int) -> None:
    """Leave blocks as an error would, which keeps Django's books."""
    try:
        for block in reversed(connection.atomic_blocks[depth:]):
            block.__exit__(RuntimeError, None, None)
        if _is_by_hand(connection):
            connection.rollback()
            connection.set_autocommit(connection.settings_dict["AUTOCOMMIT"])
    except Error:
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
