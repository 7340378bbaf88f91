"""Queues that are never to be looked at: what every store promises of them."""

from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone

from robust_queue.models import Pause
from robust_queue.stores import store_for
from robust_queue.stores.rows import Place, Selection
from tests.stores.test_turns_plans import (
    assert_follows_an_index_of_sqlite,
    rows_read_by_mariadb,
    rows_read_by_postgresql,
)
from tests.support.backlog import analyze, fill
from tests.support.processes import Claimant, claimant
from tests.support.statements import statements
from tests.support.tenants import put
from tests.support.threads import in_thread

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("claimant"),
]
__all__ = ["claimant"]

OUTSIDE = "outside"
BACKLOG = 5_000
# Rows that may be read to take so many jobs, whatever waits in the queues left out.
LIMIT, FEW = 20, 200


def take(*patterns, left_out=(OUTSIDE,), limit=50, **options):
    return store_for("default").claim(
        Selection(patterns, left_out=left_out, **options),
        limit=limit,
        process_id=Claimant.id,
        token=uuid4(),
        now=timezone.now(),
    )


def ids(claims):
    return [each.job_id for each in claims]


def queues(claims):
    return [each.queue_name for each in claims]


class TestPatterns:
    @pytest.mark.parametrize("pattern", ["*", "out*", "outside", "outs*"])
    def test_it_is_not_looked_at(self, pattern):
        put("", "", queue=OUTSIDE, rank=-5)
        assert take(pattern) == []
        assert queues(take(pattern, left_out=())) == [OUTSIDE] * 2

    def test_all_others_have_one_order_as_ever(self):
        put(*[""] * 3, queue=OUTSIDE, rank=-5)
        (third,) = put("", queue="a", rank=1)
        (first,) = put("", queue="z", rank=-1)
        (second,) = put("", queue="outsider")
        assert ids(take("*", limit=2)) == [first, second]
        assert ids(take("*")) == [third]

    def test_a_prefix_serves_the_others_by_name_as_ever(self):
        put("", queue=OUTSIDE)
        (late,) = put("", queue="outsider", rank=-1)
        (soon,) = put("", queue="out")
        assert ids(take("out*")) == [soon, late]

    def test_a_list_goes_on_behind_one_that_is_left_out(self):
        put("", queue=OUTSIDE)
        put("", queue="mail")
        assert queues(take(OUTSIDE, "mail", "out*", "*")) == ["mail"]

    def test_several_are_left_out(self):
        for name in ("a", "b", "c", "d"):
            put("", queue=name)
        assert queues(take("*", left_out=("d", "a", "c"))) == ["b"]

    def test_what_no_pattern_covers_changes_nothing(self):
        put("", queue="mail")
        assert queues(take("mail")) == ["mail"]

    @pytest.mark.parametrize("patterns", [["*"], ["outside"], ["mail", "out*", "*"]])
    def test_outcomes_and_claims_are_traded(self, patterns):
        from tests.support.outcomes import success

        put("", "", queue="mail")
        put("", queue=OUTSIDE)
        done = take("mail", limit=1)
        held, claims = store_for("default").exchange(
            [success(each) for each in done],
            Selection(patterns, left_out=(OUTSIDE,)),
            limit=5,
            process_id=Claimant.id,
            token=uuid4(),
            now=timezone.now(),
        )
        assert held == set(ids(done))
        assert queues(claims) == ([] if patterns == [OUTSIDE] else ["mail"])


class TestPauses:
    @pytest.mark.parametrize("pattern", ["*", "m*", "mail"])
    def test_a_pause_counts(self, pattern):
        put("", queue=OUTSIDE)
        put("", queue="mail")
        paused = Pause.objects.create(queue_name="mail")
        assert take(pattern) == []
        paused.delete()
        assert queues(take(pattern)) == ["mail"]

    @pytest.mark.parametrize("pattern", ["*", "m*", "mail"])
    def test_a_pause_of_another_queue_does_not(self, pattern):
        put("", queue=OUTSIDE)
        put("", queue="mail")
        Pause.objects.create(queue_name=OUTSIDE)
        Pause.objects.create(queue_name="reports")
        assert queues(take(pattern)) == ["mail"]


class TestPartitions:
    @pytest.mark.parametrize("pattern", ["*", "o*"])
    @pytest.mark.parametrize("turn", [0, 1, 2])
    def test_partitions_of_others_take_turns(self, pattern, turn):
        put("a", "b", queue=OUTSIDE, rank=-5)
        put("a", "a", "b", queue="orders")
        put("", queue="oranges")
        shared = {"orders": "", OUTSIDE: ""}
        claims = take(pattern, partitioned=shared, turn=turn)
        of_orders = [it.partition_key for it in claims if it.queue_name == "orders"]
        assert of_orders == ["a", "b", "a"]
        assert sorted(queues(claims)) == ["oranges", *["orders"] * 3]

    def test_a_shared_queue_that_is_named(self):
        put("a", "b", queue=OUTSIDE)
        assert take(OUTSIDE, partitioned={OUTSIDE: ""}) == []


@pytest.fixture
def backlog(transactional_db):
    """Five thousand jobs outside, which would go before all others."""
    fill(BACKLOG, queue=OUTSIDE)
    for name in ("mail", "reports"):
        put(*[""] * LIMIT, queue=name, rank=9)
    analyze()


@pytest.mark.usefixtures("backlog")
@pytest.mark.parametrize("pattern", ["*", "m*", "mail"])
def test_a_backlog_is_not_read(pattern):
    with statements() as found:
        read = 0
        if connection.vendor == "mysql":
            read = rows_read_by_mariadb(lambda: take(pattern, limit=LIMIT))
        else:
            assert len(take(pattern, limit=LIMIT)) == LIMIT
    if connection.vendor == "postgresql":
        (sql,) = found.changes
        read = rows_read_by_postgresql(sql)
    if connection.vendor == "sqlite":
        for sql in found.changes:
            if sql.startswith("SELECT job_id FROM robust_queue_ready_executions"):
                assert_follows_an_index_of_sqlite(sql)
    assert read < FEW


@pytest.mark.usefixtures("backlog")
def test_nor_where_there_is_nothing_else():
    assert len(take("*", limit=3 * LIMIT)) == 2 * LIMIT
    with statements() as found:
        assert take("*", limit=LIMIT) == []
    if connection.vendor == "postgresql":
        (sql,) = found.changes
        assert rows_read_by_postgresql(sql) < FEW
    assert len(found.changes) <= 4


class TestNothingApart:
    """While nothing is ready in the queues left out, they cost next to nothing."""

    @pytest.fixture(autouse=True)
    def jobs(self, claimant):
        return [put("", queue=name)[0] for name in ("e", "d", "c", "b", "a") * 2]

    def test_all_queues_are_looked_at_together(self, jobs):
        with statements() as plainly:
            assert ids(take("*", left_out=(), limit=3)) == jobs[:3]
        with statements() as found:
            assert ids(take("*", limit=3)) == jobs[3:6]
        # MariaDB makes sure that nothing came in between, SQLite asks beforehand.
        more = {"postgresql": 0, "mysql": 1, "sqlite": 2}[connection.vendor]
        assert len(found.changes) == len(plainly.changes) + more

    @pytest.mark.skipif(connection.vendor != "postgresql", reason="no other can")
    def test_a_worker_goes_on_behind_its_last_job(self, jobs):
        claims = take("*", start=Place(0, jobs[4]), limit=2)
        assert ids(claims) == jobs[4:6]
        # What is apart is not to be met on the way: then all is looked at as ever.
        put("", queue=OUTSIDE)
        assert ids(take("*", start=Place(0, jobs[8]), limit=2)) == jobs[:2]

    @pytest.mark.skipif(connection.vendor == "postgresql", reason="has one snapshot")
    def test_what_comes_behind_the_look_is_not_taken(self, jobs):
        (late,) = put("", queue=OUTSIDE, rank=-5)
        store = store_that_looks_too_early()
        with transaction.atomic():
            found = store._lock_ready(Selection(left_out=(OUTSIDE,)), 3)
        assert late not in found
        assert found == jobs[:2]  # the third place was the latecomer's

    @pytest.mark.skipif(connection.vendor != "mysql", reason="locks what it reads")
    def test_a_look_locks_nothing_outside(self, jobs):
        """Whoever works outside would pass over it, and find nothing."""
        put("", queue=OUTSIDE, rank=-5)
        with transaction.atomic():
            taken = store_for("default")._lock_ready(Selection(left_out=(OUTSIDE,)), 3)
            assert taken == jobs[:3]
            assert in_thread(lambda: queues(take(OUTSIDE, left_out=()))) == [OUTSIDE]


def store_that_looks_too_early():
    """What comes between the look at queues that are apart, and the lock, is there."""
    kind = type(store_for("default"))

    class TooEarly(kind):
        def _poll(self, *told, unless="", asked=()):
            return super()._poll(*told)

    return TooEarly("default")
