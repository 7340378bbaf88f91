"""A listener inside the test's own process: what it hears, and how it ends."""

import threading

import pytest
from django.db import connection, connections

from robust_queue.configuration import WorkerConfiguration
from robust_queue.lifecycle import wake as waking
from robust_queue.lifecycle.wake import wake
from robust_queue.processes.listener import Listener
from tests.support.supervisors import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def on_postgresql():
    if connection.vendor != "postgresql":
        pytest.skip("only PostgreSQL has notifications")
    waking._sent_at.clear()


@pytest.fixture
def listener():
    """Listens for the queues that begin with mail; counts what it was told."""
    heard = []
    made = Listener(
        WorkerConfiguration(queues=["mail*"]),
        database="default",
        on_news=lambda queues: heard.append(set(queues)),
    )
    made.heard = heard
    made.start()
    yield made
    made.stop()


def until_heard(listener):
    def hears():
        listener.probe()
        return listener.hears

    until(hears, "a probe has come through")


def test_it_hears_of_its_own_queues_only(listener):
    until_heard(listener)
    before = len(listener.heard)
    wake("default", ["reports"])
    wake("default", ["mail_now", "reports"])
    until(lambda: len(listener.heard) > before, "it was told")
    assert len(listener.heard) == before + 1
    assert listener.heard[-1] == {"mail_now", "reports"}
    wake("default")
    until(lambda: len(listener.heard) == before + 2, "that is for everybody")
    assert listener.heard[-1] == set()


def test_it_believes_nothing_before_a_probe_has_come_through(listener):
    until(lambda: listener.heard, "it listens")
    assert not listener.hears
    until_heard(listener)


def test_its_end_is_waited_for_and_leaves_nothing_behind():
    before = set(threading.enumerate())
    listener = Listener(WorkerConfiguration(), database="default", on_news=len)
    listener.start()
    until_heard(listener)
    listener.stop()
    assert set(threading.enumerate()) <= before
    assert not listener.hears
    until(lambda: sessions_that_listen() == 0, "its connection is closed")


def test_a_probe_that_was_never_sent_accuses_nobody(listener, monkeypatch):
    until(lambda: listener.heard, "it listens")
    monkeypatch.setattr("robust_queue.stores.postgresql.CHANNEL", "x" * 100)
    with pytest.raises(Exception, match="channel"):
        listener.probe()
    monkeypatch.undo()
    until_heard(listener)


def sessions_that_listen():
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"
                " AND datname = current_database()"
            )
            return cursor.fetchone()[0]
    finally:
        other.close()
