"""Conflicts are retried around the whole transaction, and nothing else is."""

import threading

import pytest
from django.db import OperationalError, connection, transaction

from robust_queue.models import Pause
from robust_queue.stores import conflicts
from tests.support.threads import started


def conflict():
    """The error this database gives when two transactions meet."""
    error = OperationalError(1213, "deadlock")
    error.__cause__ = type(
        "Cause", (Exception,), {"sqlstate": "40P01", "sqlite_errorcode": 5}
    )()
    return error


class Flaky:
    def __init__(self, failures, error):
        self.calls, self.failures, self.error = 0, failures, error

    def __call__(self):
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return "done"


@pytest.mark.django_db(transaction=True)
def test_a_conflict_is_tried_again():
    change = Flaky(3, conflict())
    assert conflicts.retried("default", change) == "done"
    assert change.calls == 4


@pytest.mark.django_db(transaction=True)
def test_not_for_ever(monkeypatch):
    monkeypatch.setattr(conflicts, "_FIRST_PAUSE", 0)
    change = Flaky(100, conflict())
    with pytest.raises(OperationalError):
        conflicts.retried("default", change)
    assert change.calls == conflicts.ATTEMPTS


@pytest.mark.django_db(transaction=True)
def test_another_error_is_not_a_conflict():
    change = Flaky(1, OperationalError("server closed the connection"))
    with pytest.raises(OperationalError):
        conflicts.retried("default", change)
    assert change.calls == 1


@pytest.mark.django_db
def test_never_inside_the_callers_transaction():
    change = Flaky(1, conflict())
    with pytest.raises(OperationalError):
        conflicts.retried("default", change)
    assert change.calls == 1


@pytest.mark.django_db(transaction=True)
def test_nor_where_the_caller_commits_by_hand():
    change = Flaky(1, conflict())
    transaction.set_autocommit(False)
    try:
        with pytest.raises(OperationalError):
            conflicts.retried("default", change)
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert change.calls == 1


@pytest.mark.django_db(transaction=True)
def test_nor_longer_than_anyone_would_wait(monkeypatch):
    monkeypatch.setattr(conflicts, "PATIENCE", -1)
    change = Flaky(1, conflict())
    with pytest.raises(OperationalError):
        conflicts.retried("default", change)
    assert change.calls == 1


@pytest.mark.usefixtures("row_locks")
def test_a_real_deadlock_is_recognised_and_survived():
    """Two transactions lock two rows in opposite order; one is chosen to lose."""
    for name in ("a", "b"):
        Pause.objects.create(queue_name=name)
    both_hold_one = threading.Barrier(2)

    def lock(first, second):
        calls = []

        def change():
            calls.append(first)
            with transaction.atomic():
                Pause.objects.select_for_update().get(pk=first)
                if len(calls) == 1:
                    both_hold_one.wait(30)
                Pause.objects.select_for_update().get(pk=second)
            return len(calls)

        return conflicts.retried("default", change)

    futures = [started(lock, "a", "b"), started(lock, "b", "a")]
    assert sorted(future.result(60) for future in futures) == [1, 2]


@pytest.mark.django_db(transaction=True)
def test_a_locked_sqlite_database_is_a_conflict():
    if connection.vendor != "sqlite":
        pytest.skip("the lock of the whole file is SQLite's")
    import sqlite3

    held = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 1")
    try:
        with pytest.raises(OperationalError) as caught:
            Pause.objects.create(queue_name="x")
        assert conflicts.is_conflict(caught.value)
    finally:
        held.execute("ROLLBACK")
        held.close()
        connection.close()
