"""How much is said to the database: pinned, because round trips decide the speed."""

import pytest
from django.db import connection, transaction

from robust_queue import enqueue_all
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.settle import settle
from robust_queue.models import Pause
from robust_queue.testing import drain
from tests.stores.test_races import success, to_be_tried_again
from tests.support.processes import Claimant, claimant
from tests.support.statements import statements
from tests.testapp.tasks import add, note

pytestmark = pytest.mark.django_db(transaction=True)


__all__ = ["claimant"]


@pytest.fixture
def on_postgresql(claimant):
    return connection.vendor == "postgresql"


def take(limit, *queues, **options):
    return claim(
        "default",
        process_id=Claimant.id,
        queues=queues or ("*",),
        limit=limit,
        **options,
    )


def test_enqueue_is_one_statement_on_postgresql_and_two_elsewhere(on_postgresql):
    with statements() as found:
        note.enqueue("hello", times=3)
    if on_postgresql:
        assert len(found) == 1, "no BEGIN, no COMMIT: one round trip"
    else:
        assert len(found.changes) == 2


def test_enqueue_inside_a_transaction_is_one_round_trip(on_postgresql):
    with transaction.atomic(), statements() as found:
        note.enqueue("hello")
    assert len(found) == (1 if on_postgresql else 2)


def test_enqueue_all_of_a_thousand(on_postgresql):
    with statements() as found:
        results = enqueue_all(note.bind(i) for i in range(1000))
    assert len(results) == 1000
    assert len(found) <= 4
    assert len(found.changes) == (1 if on_postgresql else 2)


@pytest.mark.parametrize("count", [1, 50])
def test_a_claim_is_one_round_trip_on_postgresql_and_few_statements_elsewhere(
    count, on_postgresql
):
    enqueue_all(note.bind(i) for i in range(100))
    with statements() as found:
        assert len(take(count)) == count
    if on_postgresql:
        assert len(found) == 1
    else:
        assert len(found.changes) == (5 if connection.vendor == "mysql" else 6)


def test_an_idle_poll_is_one_statement(on_postgresql):
    with statements() as found:
        assert take(3, is_likely=False) == []
    assert len(found) == 1, "and no transaction"


@pytest.mark.parametrize("queues", [["a"], ["a", "b", "c"], ["a*"], ["x", "*"]])
def test_a_claim_from_several_queues_is_still_one_round_trip(queues, on_postgresql):
    for name in ("a", "b", "c"):
        note.using(queue_name=name).enqueue()
    Pause.objects.create(queue_name="b")
    with statements() as found:
        assert take(10, *queues)
    if on_postgresql:
        assert len(found) == 1
    else:
        assert len(found.changes) <= 5 + 2 + len(queues) + 3


def test_settling_a_batch(on_postgresql):
    enqueue_all(note.bind(i) for i in range(50))
    outcomes = [success(each) for each in take(50)]
    with statements() as found:
        assert len(settle("default", outcomes)) == 50
    assert len(found.changes) == (1 if on_postgresql else 3)


def test_settling_for_another_attempt_costs_one_insert_more(on_postgresql):
    enqueue_all(note.bind(i) for i in range(50))
    outcomes = [to_be_tried_again(each) for each in take(50)]
    with statements() as found:
        assert len(settle("default", outcomes)) == 50
    assert len(found.changes) == (1 if on_postgresql else 4)


def test_releasing_and_dispatching(on_postgresql):
    enqueue_all(note.bind(i) for i in range(50))
    claims = take(50)
    with statements() as found:
        release("default", claims)
    assert len(found.changes) == (1 if on_postgresql else 3)
    with statements() as found:
        dispatch_due("default")
    assert len(found.changes) == 1


def test_reading_a_result():
    result = add.enqueue(1, 2)
    drain()
    with statements() as found:
        result.refresh()
    assert result.return_value == 3
    assert len(found) == 2
