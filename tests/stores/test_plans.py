"""No poll sorts, and none reads more than it takes, however deep the backlog is."""

import json
import time
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from robust_queue.models import Pause
from robust_queue.stores import store_for
from robust_queue.stores.rows import Selection
from tests.support.backlog import analyze, fill
from tests.support.processes import Claimant, claimant
from tests.support.statements import statements

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("claimant"),
    pytest.mark.timeout(300),
]
__all__ = ["claimant"]

DEPTH = 100_000
QUEUES = [
    ("*",),
    ("queue_1",),
    ("queue_1", "queue_2", "queue_3"),
    ("queue_*",),
    ("nothing", "*"),
]


def poll(queues=("*",), limit=50):
    return store_for("default").claim(
        Selection(queues),
        limit=limit,
        process_id=Claimant.id,
        token=uuid4(),
        now=timezone.now(),
    )


def explained(sql, *, plain=False):
    """The plan of a statement, in the words of the database."""
    explain = (
        "EXPLAIN"
        if plain
        else {
            "postgresql": "EXPLAIN (FORMAT JSON)",
            "mysql": "EXPLAIN FORMAT=JSON",
            "sqlite": "EXPLAIN QUERY PLAN",
        }[connection.vendor]
    )
    with connection.cursor() as cursor:
        cursor.execute(f"{explain} {sql.replace('%', '%%')}")
        return cursor.fetchall()


def assert_follows_an_index(sql):
    {"postgresql": _postgresql, "mysql": _mysql, "sqlite": _sqlite}[connection.vendor](
        sql
    )


def _postgresql(sql):
    ((plan,),) = explained(sql)
    whole = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
    polls = [
        n for n in _nodes(whole) if n.get("Subplan Name", "").startswith("CTE poll")
    ]
    assert polls
    for node in (node for each in polls for node in _nodes(each)):
        if node["Node Type"] == "Sort":
            assert ".name" in node["Sort Key"][0], "the few names of queues only"
        assert node["Node Type"] != "Seq Scan" or _reads_pauses(node)
        assert node["Node Type"] != "Bitmap Heap Scan", "unordered: it would be sorted"
    for node in _nodes(whole):
        if node.get("Relation Name") == "robust_queue_ready_executions":
            assert node["Node Type"] in INDEXED


def _reads_pauses(node):
    return node["Relation Name"] == "robust_queue_pauses"


def _nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _mysql(sql):
    ((plan,),) = explained(sql)
    assert "filesort" not in plan
    if "Impossible WHERE" in plan:
        return  # something is paused: the poll of all queues at once is not even begun
    assert '"key": "rqueue_poll' in plan
    assert '"using_index": true' in plan, "the index alone"


def _sqlite(sql):
    plan = " ".join(row[3] for row in explained(sql))
    assert "USING COVERING INDEX rqueue_poll" in plan
    assert "TEMP B-TREE" not in plan
    assert "SCAN robust_queue_ready_executions USING COVERING INDEX" in plan or (
        "SEARCH robust_queue_ready_executions USING COVERING INDEX" in plan
    )


# The last two delete what was taken, by its key.
INDEXED = {"Index Scan", "Index Only Scan", "ModifyTable", "Bitmap Heap Scan"}


def polls_among(found):
    if connection.vendor == "postgresql":
        return found.changes
    return [sql for sql in found.changes if "ORDER BY priority" in sql]


@pytest.fixture
def deep_backlog(transactional_db):
    fill(DEPTH)
    analyze()


@pytest.mark.usefixtures("deep_backlog")
def test_no_poll_sorts():
    for paused in ([], ["queue_0"]):
        for name in paused:
            Pause.objects.create(queue_name=name)
        for queues in QUEUES:
            with statements() as found:
                assert len(poll(queues)) == 50
            assert polls_among(found)
            for sql in polls_among(found):
                assert_follows_an_index(sql)


@pytest.mark.usefixtures("deep_backlog")
def test_a_poll_reads_about_as_many_rows_as_it_takes():
    if connection.vendor != "mysql":
        pytest.skip("only MariaDB counts the rows that its handlers read")
    Pause.objects.create(queue_name="queue_0")
    with connection.cursor() as cursor:
        cursor.execute("FLUSH STATUS")
        assert len(poll(("queue_1", "*"))) == 50
        cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        read = sum(int(count) for _, count in cursor.fetchall())
    assert read < 1000


@pytest.mark.parametrize("depth", [10_000, 50_000, DEPTH])
def test_a_burst_after_idling_is_claimed_as_fast_as_a_warm_backlog(depth):
    """Statistics of empty, vacuumed tables must not decide how a burst is read."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
            # What earlier tests have taught: analysing an empty table keeps it.
            cursor.execute(
                "DELETE FROM pg_statistic"
                " WHERE starelid = 'robust_queue_ready_executions'::regclass"
            )
    for _ in range(20):
        assert poll() == []
    fill(depth)
    for queues in QUEUES:
        with statements() as found:
            assert len(poll(queues)) == 50
        for sql in polls_among(found):
            assert_follows_an_index(sql)
    cold = _seconds_per_claim()
    analyze()
    warm = _seconds_per_claim()
    assert cold < 3 * warm


def _seconds_per_claim():
    taken = []
    for _ in range(30):
        begin = time.perf_counter()
        assert len(poll(("queue_1", "*"))) == 50
        taken.append(time.perf_counter() - begin)
    # The quickest of many: what the plan costs, without what else the machine does.
    return min(taken)
