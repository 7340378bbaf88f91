"""How databases find the locks of unique keys when there are many of them.

Right behind a burst, that is, when statistics tell of an empty table.
"""

import pytest
from django.db import connection

from robust_queue import enqueue_all
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import discard_all
from robust_queue.lifecycle.settle import settle
from robust_queue.models import UniqueLock
from tests.support.outcomes import success
from tests.support.processes import a_process
from tests.support.statements import statements
from tests.testapp.unique_tasks import once

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 5_000
EXPLAIN = {"postgresql": "EXPLAIN", "sqlite": "EXPLAIN QUERY PLAN", "mysql": "EXPLAIN"}


def plans(found):
    """How the statements that touch locks were run, in the words of the database."""
    told = [sql for sql in found.changes if "robust_queue_unique_locks" in sql]
    assert told
    with connection.cursor() as cursor:
        for sql in told:
            cursor.execute(f"{EXPLAIN[connection.vendor]} {sql}")
            yield "\n".join(str(row) for row in cursor.fetchall())


def assert_by_key(plan):
    assert "rqueue_lock_expiry" not in plan
    assert "Seq Scan on robust_queue_unique_locks" not in plan
    assert "SCAN robust_queue_unique_locks" not in plan
    assert "'ALL'" not in plan


def test_settle_follows_the_keys():
    enqueue_all(once.bind(i) for i in range(MANY))
    claims = claim("default", process_id=a_process(), queues=("*",), limit=50)
    with statements() as found:
        settle("default", [success(each) for each in claims])
    assert UniqueLock.objects.count() == MANY - 50
    for plan in plans(found):
        assert_by_key(plan)


def test_an_operator_asks_by_jobs():
    results = enqueue_all(once.bind(i) for i in range(MANY))
    with statements() as found:
        assert discard_all("default", [each.id for each in results[:5]]) == 5
    assert UniqueLock.objects.count() == MANY - 5
    for plan in plans(found):
        assert_by_key(plan)
