"""Turns are as cheap with one tenant of 100,000 jobs as with none."""

import json
from collections import Counter

import pytest
from django.db import connection, transaction

from tests.stores.test_plans import explained
from tests.support.backlog import analyze, fill
from tests.support.statements import statements
from tests.support.tenants import QUEUE, Server, put
from tests.support.threads import in_threads

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

DEPTH = 100_000
LIMIT = 20
SMALL = [f"small {n}" for n in range(10)]
# Rows that may be read to take so many jobs, whatever waits behind them: some to find
# the partitions, some to find jobs without one, some to take.
FEW = 1_000
PATTERNS = [QUEUE, "imp*", "*"]


@pytest.fixture
def burst(transactional_db):
    """One tenant has 100,000 jobs, and ten have ten each. Nobody has counted them."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
            cursor.execute(
                "DELETE FROM pg_statistic"
                " WHERE starelid = 'robust_queue_ready_executions'::regclass"
            )
    fill(DEPTH, queue=QUEUE, partition="big")
    put(*SMALL * 10)
    put(*[""] * 90, queue="other")


@pytest.fixture
def crowded(burst):
    """The same, and the database knows."""
    analyze()


def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def rows_read_by_postgresql(sql):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql.replace('%', '%%')}")
        ((plan,),) = cursor.fetchall()
        transaction.set_rollback(True)
    (whole,) = json.loads(plan) if isinstance(plan, str) else plan
    assert "JIT" not in whole, "it takes far longer to compile than to run"
    scans = [
        node
        for node in nodes(whole["Plan"])
        if node.get("Relation Name") == "robust_queue_ready_executions"
        and "Scan" in node["Node Type"]
    ]
    assert "Seq Scan" not in {node["Node Type"] for node in scans}
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        * node["Actual Loops"]
        for node in scans
    )


def rows_read_by_mariadb(take):
    with connection.cursor() as cursor:
        cursor.execute("FLUSH STATUS")
        take()
        cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(count) for _, count in cursor.fetchall())


def assert_follows_an_index_of_sqlite(sql):
    plan = " ".join(row[3] for row in explained(sql))
    assert "rqueue_poll_by_" in plan
    assert "TEMP B-TREE" not in plan
    assert "SCAN robust_queue_ready_executions" not in plan


@pytest.mark.parametrize("state", ["burst", "crowded"])
def test_few_rows_are_read(request, state):
    request.getfixturevalue(state)
    for pattern in PATTERNS:
        server = Server(pattern)
        for _ in range(3):
            _assert_few_rows_are_read(server)


def _assert_few_rows_are_read(server):
    if connection.vendor == "mysql":
        assert rows_read_by_mariadb(lambda: server.serve(LIMIT)) < FEW
        return
    with statements() as found:
        assert len(server.serve(LIMIT)) == LIMIT
    if connection.vendor == "postgresql":
        (sql,) = found.changes
        assert rows_read_by_postgresql(sql) < FEW
        return
    polls = [sql for sql in found.changes if "ORDER BY" in sql and "WITH" not in sql]
    for sql in polls:
        assert_follows_an_index_of_sqlite(sql)


# ── What it is for ─────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("crowded")
def test_a_large_tenant_keeps_nobody_waiting():
    for pattern in PATTERNS:
        server = Server(pattern)
        # The other queues have every second turn of one that serves them as well.
        turns = 44 if pattern == "*" else 22
        served = Counter(each for _ in range(turns) for each in server.serve(1))
        del served[""]
        assert served == dict.fromkeys([*SMALL, "big"], 2)


@pytest.mark.usefixtures("crowded")
def test_in_batches_they_are_served_within_two_rounds():
    server = Server()
    served = Counter(each for _ in range(2) for each in server.serve(55))
    assert served == dict.fromkeys([*SMALL, "big"], 10)


@pytest.mark.usefixtures("crowded", "row_locks")
def test_two_workers_serve_them_within_two_rounds_each():
    def work(server):
        return lambda: [each for _ in range(22) for each in server.serve(5)]

    served = in_threads([work(Server()), work(Server())])
    together = Counter(served[0] + served[1])
    assert sum(together.values()) == 220
    for name in SMALL:
        assert together[name] == 10
    for order in served:
        # Whoever has jobs is served once in two rounds, whatever the other one does.
        assert {*order[:22]} >= {*SMALL}
