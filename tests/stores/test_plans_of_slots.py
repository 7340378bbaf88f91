"""Who is next for a slot is found along an index, also right behind a burst."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from robust_queue import enqueue_all
from robust_queue.lifecycle.claim import claim
from robust_queue.stores.arrays import arrays_of, uuids
from robust_queue.stores.postgresql_slots import FOLLOW, PROMOTE
from tests.support.processes import a_process
from tests.testapp.limited_tasks import one_by_account

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor != "postgresql", reason="Others are told the index."
    ),
]

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def held():
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    enqueue_all(one_by_account.bind(f"{i}") for i in range(500))
    enqueue_all(one_by_account.bind("hot") for _ in range(5_000))
    claims = claim("default", process_id=a_process(), limit=1_000)
    return next(each for each in claims if each.concurrency_key.endswith("/hot"))


def plan_of(statement, parameters, step):
    """The lines that tell how one step of a statement is done."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement}", parameters)
        text = "\n".join(line for (line,) in cursor.fetchall())
    return text.partition(f"CTE {step}\n")[2].partition("\n  CTE ")[0]


def test_of_those_that_follow(held):
    slots = uuids([uuid4()])
    named = *arrays_of(("job_id", "token", "concurrency_key"), [held]), slots
    now, process = timezone.now(), held.process_id
    found = plan_of(FOLLOW, (process, 24, *named, now, now, process, uuid4()), "next")
    assert "Index Scan using rqueue_unblock" in found
    assert "Sort" not in found


def test_of_those_that_are_promoted(held):
    limits = [[held.concurrency_key], [25], [NOW]]
    found = plan_of(PROMOTE, (*limits, NOW), "next")
    assert "Index Scan using rqueue_unblock" in found
    assert "Sort" not in found
