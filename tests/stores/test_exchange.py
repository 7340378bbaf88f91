"""Settle and claim in one transaction: everything that either of them promises."""

import time
from uuid import uuid4

import pytest
from django.db import connection

from robust_queue import enqueue_all
from robust_queue.lifecycle.claim import Claiming, claim
from robust_queue.lifecycle.settle import settle_and_claim
from robust_queue.models import (
    FailedExecution,
    FinishedExecution,
    Pause,
    Process,
    ScheduledExecution,
)
from robust_queue.stores import conflicts, store_for
from robust_queue.stores.rows import Place, Selection
from tests.stores.test_contract import NOW, a_job, failure, ids, success, take
from tests.stores.test_contract_of_retries import again
from tests.support.invariants import states
from tests.support.processes import a_process
from tests.support.statements import statements
from tests.support.threads import in_thread, in_threads, started, uncommitted
from tests.testapp.tasks import note

pytestmark = pytest.mark.django_db


@pytest.fixture
def store():
    return store_for("default")


@pytest.fixture
def process():
    return a_process()


def exchange(store, outcomes, process, *patterns, limit=100):
    return store.exchange(
        outcomes,
        Selection(patterns or ("*",)),
        limit=limit,
        process_id=process,
        token=uuid4(),
        now=NOW,
    )


class TestContract:
    def test_what_has_ended_is_recorded_and_the_next_are_taken(self, store, process):
        store.insert(jobs := [a_job() for _ in range(6)])
        first = take(store, limit=3, process_id=process)
        held, claims = exchange(store, [success(c) for c in first], process, limit=2)
        assert held == set(ids(first))
        assert ids(claims) == ids(jobs[3:5]), "in their order"
        assert sorted(states().values()) == ["claimed"] * 2 + ["finished"] * 3 + [
            "ready"
        ]

    def test_a_claim_has_everything_that_a_plain_one_has(self, store, process):
        arguments = '{"args":["\\u0000 \\" {}"],"kwargs":{}}'
        store.insert([a_job(), a_job(arguments=arguments, metadata='{"a":1}')])
        (first,) = take(store, limit=1, process_id=process)
        _, (one,) = exchange(store, [success(first)], process)
        store.release([one], now=NOW)
        (other,) = take(store, process_id=process)
        for name in ("attempts", "task_path", "backend", "queue_name", "priority"):
            assert getattr(one, name) == getattr(other, name)
        for name in ("arguments", "enqueued_at", "run_after", "metadata"):
            assert getattr(one, name) == getattr(other, name)
        assert one.process_id == process
        assert one.token != other.token

    def test_every_kind_of_outcome(self, store, process):
        store.insert([a_job() for _ in range(5)])
        ok, gone, bad, later = take(store, limit=4, process_id=process)
        outcomes = [success(ok), success(gone, keep=False), failure(bad), again(later)]
        held, claims = exchange(store, outcomes, process)
        assert held == {ok.job_id, gone.job_id, bad.job_id, later.job_id}
        assert len(claims) == 1
        assert FinishedExecution.objects.get().job_id == ok.job_id
        assert FailedExecution.objects.get().job_id == bad.job_id
        assert ScheduledExecution.objects.get().job_id == later.job_id

    def test_what_was_lost_is_told_and_spoils_nothing(self, store, process):
        store.insert([a_job() for _ in range(4)])
        lost, foreign, kept = take(store, limit=3, process_id=process)
        store.settle([success(lost)])
        outcomes = [failure(lost), success(foreign, token=uuid4()), success(kept)]
        held, claims = exchange(store, outcomes, process)
        assert held == {kept.job_id}
        assert len(claims) == 1
        assert states()[foreign.job_id] == "claimed"

    def test_nothing_may_be_there_to_be_taken(self, store, process):
        store.insert([a_job()])
        (only,) = take(store, process_id=process)
        assert exchange(store, [success(only)], process) == ({only.job_id}, [])

    def test_queues_come_in_their_order_and_pauses_count(self, store, process):
        names = ["paused", "a", "b1", "b2"]
        store.insert([a_job(), *(a_job(queue_name=name) for name in names)])
        (first,) = take(store, "default", process_id=process)
        Pause.objects.create(queue_name="paused")
        _, claims = exchange(store, [success(first)], process, "b*", "*")
        assert [each.queue_name for each in claims] == ["b1", "b2", "a"]

    def test_who_was_struck_off_settles_what_is_held_and_gets_nothing(
        self, store, process
    ):
        store.insert([a_job(), a_job()])
        (first,) = take(store, limit=1, process_id=process)
        Process.objects.strike_off(process)
        assert exchange(store, [success(first)], process) == ({first.job_id}, [])
        assert sorted(states().values()) == ["finished", "ready"]


class TestStart:
    """Jobs in front of a place may be passed over, where that is of use."""

    def begin_at(self, store, process, *patterns, job):
        return store.claim(
            Selection(patterns, Place(job.rank, job.id)),
            limit=100,
            process_id=process,
            token=uuid4(),
            now=NOW,
        )

    @pytest.mark.parametrize("pattern", ["*", "default"])
    def test_the_place_itself_counts(self, store, process, pattern):
        jobs = [a_job(rank=rank) for rank in (-5, -5, 0, 0, 7)]
        store.insert([*jobs, a_job(queue_name="other", rank=-9)])
        found = self.begin_at(store, process, pattern, job=jobs[2])
        if store.can_start_anywhere([pattern]):
            assert ids(found) == ids(jobs[2:])
        else:
            assert set(ids(jobs)) <= set(ids(found))

    def test_nothing_is_passed_over_where_something_is_paused(self, store, process):
        store.insert(jobs := [a_job(), a_job(), a_job(queue_name="paused")])
        Pause.objects.create(queue_name="paused")
        found = self.begin_at(store, process, "*", job=jobs[1])
        assert ids(found) == ids(jobs[:2])

    @pytest.mark.parametrize("is_paused", [False, True])
    def test_who_expects_no_pause_may_find_nothing_where_there_is_one(
        self, store, process, is_paused
    ):
        store.insert([job := a_job(), a_job(queue_name="other")])
        if is_paused:
            Pause.objects.create(queue_name="other")
        selection = Selection(("*",), expects_no_pause=True)
        facts = {"process_id": process, "token": uuid4(), "now": NOW}
        found = ids(store.claim(selection, limit=100, **facts))
        if is_paused:
            assert found in ([], [job.id])
        else:
            assert len(found) == 2

    @pytest.mark.parametrize("patterns", [["a", "b"], ["a*"], ["a", "*"], []])
    def test_where_there_is_more_than_one_order_there_is_no_place(
        self, store, patterns
    ):
        assert not store.can_start_anywhere(patterns)

    def test_what_was_taken_is_told_with_its_rank(self, store, process):
        store.insert([a_job(priority=5, rank=-5)])
        assert [each.rank for each in take(store, process_id=process)] == [-5]


@pytest.mark.django_db(transaction=True)
class TestStatements:
    @pytest.mark.parametrize("count", [1, 50])
    def test_one_round_trip_on_postgresql_and_few_statements_elsewhere(self, count):
        enqueue_all(note.bind(i) for i in range(2 * count))
        process = a_process()
        outcomes = [
            success(c) for c in claim("default", process_id=process, limit=count)
        ]
        claiming = Claiming(process_id=process, limit=count)
        with statements() as found:
            held, claims = settle_and_claim("default", outcomes, claiming)
        assert len(held) == len(claims) == count
        if connection.vendor == "postgresql":
            assert len(found) == 1, "no BEGIN, no COMMIT"
        else:
            # The process; three to settle; three to take and one to read, and where
            # all queues are asked for, one that looks for pauses.
            assert len(found.changes) == 8

    def test_nothing_to_settle_is_a_plain_claim_and_no_room_a_plain_settle(self):
        enqueue_all(note.bind(i) for i in range(2))
        process = a_process()
        some = Claiming(process_id=process, limit=5)
        none = Claiming(process_id=process, limit=0)
        held, claims = settle_and_claim("default", [], some)
        assert (held, len(claims)) == (set(), 2)
        held, nothing = settle_and_claim("default", [success(c) for c in claims], none)
        assert (held, nothing) == (set(ids(claims)), [])
        with statements() as found:
            assert settle_and_claim("default", [], none) == (set(), [])
        assert len(found) == 0


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_no_job_is_taken_by_two_and_none_is_lost(self):
        enqueue_all(note.bind(i) for i in range(400))

        def work():
            process, taken, outcomes = a_process(), [], []
            while True:
                claiming = Claiming(process_id=process, limit=7)
                held, claims = settle_and_claim("default", outcomes, claiming)
                assert len(held) == len(outcomes)
                if not claims:
                    return taken
                taken += ids(claims)
                outcomes = [success(each) for each in claims]

        found = [job_id for taken in in_threads([work] * 4) for job_id in taken]
        assert len(found) == len(set(found)) == 400
        assert set(states().values()) == {"finished"}

    @pytest.mark.skipif(
        connection.vendor == "sqlite", reason="SQLite has one writer at a time"
    )
    def test_whoever_strikes_the_process_off_and_it_do_not_wait_for_each_other(
        self, monkeypatch
    ):
        """Process first, claims behind it, on both sides: no deadlock."""
        monkeypatch.setattr(conflicts, "ATTEMPTS", 1)
        enqueue_all(note.bind(i) for i in range(4))
        process = a_process()
        claims = claim("default", process_id=process, limit=2)
        outcomes = [success(each) for each in claims]
        claiming = Claiming(process_id=process, limit=2)
        with uncommitted(Process.objects.strike_off, process):
            worker = started(settle_and_claim, "default", outcomes, claiming)
            time.sleep(0.3)  # far longer than it takes where nobody is in the way
            assert not worker.done(), "it waits for the row of its process"
            # And holds no claim meanwhile: who is about to bury it gets them.
            assert in_thread(store_for("default").settle, outcomes[:1])
        held, taken = worker.result(30)
        assert held == set(ids(claims)), "one of them is stored already"
        assert taken == [], "it is registered no more"
