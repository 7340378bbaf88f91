"""However much has ended, a look at the oldest follows the index on their time."""

import json

import pytest
from django.db import connection
from django.utils import timezone

from robust_queue.stores import store_for
from tests.settings import KIND
from tests.stores.test_plans import _nodes, explained
from tests.support.backlog import analyze
from tests.support.ended import DAY, MODELS, fill_with_ended
from tests.support.statements import statements

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

# PostgreSQL rightly reads a table as a whole that has hardly more pages than the batch
# has rows, if it was never analyzed.
DEPTH = 300_000 if KIND == "postgresql" else 100_000
LIMIT = 500
SECOND = DAY / 86_400


def look(state, after=None, limit=LIMIT):
    store, moment = store_for("default"), timezone.now() - DAY
    return store.ended(state, before=moment, after=after, limit=limit)


def assert_follows_the_index(sql, state):
    {"postgresql": _postgresql, "mysql": _mysql, "sqlite": _sqlite}[connection.vendor](
        sql, state
    )


def _postgresql(sql, state):
    ((plan,),) = explained(f"(ANALYZE, FORMAT JSON) {sql}", plain=True)
    whole = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
    scans = [node for node in _nodes(whole) if "Relation Name" in node]
    walk, jobs = sorted(scans, key=lambda node: node["Relation Name"])
    assert walk["Node Type"] == "Index Scan", "in its order, not all at once"
    assert walk["Index Name"] == f"rqueue_{state}_at"
    assert jobs["Node Type"] == "Index Scan", "by their keys"
    assert walk["Actual Rows"] < 2 * LIMIT, "it stops where it has enough"
    assert (jobs["Actual Rows"], jobs["Actual Loops"]) == (1, LIMIT)
    # Else each job is compared with all of them: 65 ms instead of 1 ms.
    assert "ANY" not in jobs["Index Cond"], "each by its own"


def _mysql(sql, state):
    ((plan,),) = explained(sql)
    assert f'"key": "rqueue_{state}_at"' in plan
    with connection.cursor() as cursor:
        cursor.execute("FLUSH STATUS")
        cursor.execute(sql.replace("%", "%%"))
        cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        read = sum(int(count) for _, count in cursor.fetchall())
    # The row, its job, and what was found, some times over.
    assert read < 10 * LIMIT


def _sqlite(sql, state):
    plan = " ".join(row[3] for row in explained(sql))
    assert f"robust_queue_{state}_executions USING INDEX rqueue_{state}_at" in plan
    assert "SEARCH job USING" in plan
    walk, _, _ = plan.partition("SEARCH job")
    assert "TEMP B-TREE FOR ORDER BY" not in walk, "only what ended at the same moment"


@pytest.mark.parametrize("state", sorted(MODELS))
def test_a_look_follows_the_index(state):
    fill_with_ended(state, DEPTH, ago=2 * DAY)
    assert_looks_follow_the_index(state)
    analyze()
    assert_looks_follow_the_index(state)


@pytest.mark.parametrize("state", sorted(MODELS))
def test_a_look_does_where_nearly_everything_is_known_to_be_young(state):
    """As it mostly is: what gets old goes. A single row is expected to be old then.

    With one row to join anything will do.
    """
    for hours in (0, 8, 16, 23):
        ago = DAY * hours / 24
        fill_with_ended(state, 5_000, ago=ago, task=f"shop.tasks.of_{hours}_hours_ago")
    analyze()
    fill_with_ended(state, DEPTH, ago=DAY + SECOND)
    assert_looks_follow_the_index(state)


def assert_looks_follow_the_index(state):
    after = None
    for _ in range(3):
        with statements() as found:
            rows = look(state, after)
        assert len(rows) == LIMIT
        (sql,) = found
        assert_follows_the_index(sql, state)
        after = rows[-1].milestone
    # Somewhere in the middle, as a sweep begins that has been there before.
    moment = after.finished_at + 30 * SECOND
    with statements() as found:
        assert len(look(state, after._replace(finished_at=moment))) == LIMIT
    assert_follows_the_index(found[0], state)


@pytest.mark.parametrize("is_analyzed", [False, True], ids=["burst", "analyzed"])
def test_a_batch_is_deleted_by_its_keys(is_analyzed):
    if connection.vendor != "postgresql":
        pytest.skip("elsewhere each statement names its keys")
    fill_with_ended("finished", DEPTH, ago=2 * DAY)
    if is_analyzed:
        analyze()
    ids = [row.job_id for row in look("finished")]
    with statements() as found:
        store_for("default").clear("finished", ids, before=timezone.now())
    ((plan,),) = explained(found[0])
    whole = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
    read = {n["Node Type"] for n in _nodes(whole) if _is_deep(n)}
    assert read <= {"Index Scan", "Index Only Scan", "Bitmap Heap Scan", "ModifyTable"}


def _is_deep(node):
    deep = ("robust_queue_jobs", "robust_queue_finished_executions")
    return node.get("Relation Name") in deep
