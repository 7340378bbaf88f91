"""The caller's transactions: is one open, and what is to happen when it commits."""

from collections.abc import Callable, Iterable

from django.db import connections, transaction


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


class CommitHook:
    """Runs when a transaction commits, before the hooks of everyone else.

    Django drops all hooks behind one that raises. An enqueue that waits for the commit
    must not get lost because another app's hook failed, so ours go to the front, in
    their own order. Savepoints that are rolled back still take their hooks along.
    """

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action

    def __call__(self) -> None:
        self.action()

    def register(self, alias: str) -> None:
        transaction.on_commit(self, using=alias)
        waiting = connections[alias].run_on_commit
        ahead = sum(isinstance(entry[1], CommitHook) for entry in waiting[:-1])
        waiting.insert(ahead, waiting.pop())


def on_commit(alias: str, action: Callable[[], None]) -> None:
    """Do this when the caller's transaction on that database has committed."""
    CommitHook(action).register(alias)
