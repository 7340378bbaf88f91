"""What a supervisor says about the queues when it starts."""

import pytest
from django.db import OperationalError

from robust_queue.configuration import WorkerConfiguration
from robust_queue.management import banner
from robust_queue.management.banner import advice
from tests.support import rows
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

WORKERS = [WorkerConfiguration(queues=["mail", "photo*"])]


def told():
    return list(advice("default", WORKERS))


def test_nothing_where_nothing_is_odd():
    rows.ready(rows.job(queue_name="mail"))
    rows.ready(rows.job(queue_name="photos"))
    assert told() == []


def test_queues_that_are_paused_and_queues_that_nobody_serves():
    for name in ("reports", "reports", "paused"):
        rows.ready(rows.job(queue_name=name))
    rows.pause(queue_name="paused")
    rows.pause(queue_name="mail")
    assert told() == [
        "Queue 'mail' is paused: manage.py robust_queue resume mail",
        "Queue 'paused' is paused: manage.py robust_queue resume paused",
        "Queue 'reports' has ready jobs, and no worker of this supervisor serves it.",
    ]


def test_nothing_is_counted():
    """A backlog of millions must not delay the start."""
    for number in range(9):
        rows.ready(rows.job(queue_name=f"queue-{number}"))
    with statements() as sent:
        assert len(told()) == 9
    assert len(sent) == 2
    assert not [sql for sql in sent if "COUNT" in sql.upper()]


def test_a_database_that_is_away_is_left_to_the_supervisor(monkeypatch):
    def refuse(database):
        raise OperationalError("away")

    monkeypatch.setattr(banner, "store_for", refuse)
    assert told() == []
