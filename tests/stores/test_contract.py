"""What every store promises, asked of the one in use."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from robust_queue.identifiers import new_job_id
from robust_queue.models import (
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    Job,
    Pause,
    ReadyExecution,
    ScheduledExecution,
)
from robust_queue.stores import store_for
from robust_queue.stores.rows import Failed, Finished, NewJob, Selection
from tests.support.invariants import states
from tests.support.processes import a_process

pytestmark = pytest.mark.django_db

NOW = timezone.now()
EVERYTHING = Selection(("*",))


@pytest.fixture
def store():
    return store_for("default")


def a_job(**changes):
    values = {
        "id": new_job_id(),
        "task_path": "tests.testapp.tasks.note",
        "backend": "default",
        "queue_name": "default",
        "priority": 0,
        "rank": 0,
        "arguments": '{"args":[],"kwargs":{}}',
        "enqueued_at": NOW,
    }
    return NewJob(**{**values, **changes})


def take(store, *patterns, limit=100, process_id=None):
    return store.claim(
        Selection(patterns or ("*",)),
        limit=limit,
        process_id=process_id or a_process(store.alias),
        token=uuid4(),
        now=NOW,
    )


def ids(rows):
    return [getattr(row, "job_id", None) or row.id for row in rows]


def attempt_of(claim):
    return {
        "job_id": claim.job_id,
        "token": claim.token,
        "attempts": claim.attempts,
        "worker_id": "worker-1@host:42",
        "started_at": NOW,
        "finished_at": NOW + timedelta(seconds=1),
    }


def success(claim, **changes):
    return Finished(**{**attempt_of(claim), "result": "42", **changes})


def failure(claim, **changes):
    error = {"exception_class": "builtins.ValueError", "message": "boom"}
    return Failed(**{**attempt_of(claim), **error, "traceback": "…", **changes})


class TestInsert:
    def test_a_due_job_is_ready(self, store):
        job = a_job(run_after=NOW - timedelta(seconds=1))
        store.insert([job])
        assert states() == {job.id: "ready"}

    def test_a_later_job_is_scheduled(self, store):
        job = a_job(run_after=NOW + timedelta(hours=1), rank=-7)
        store.insert([job])
        row = ScheduledExecution.objects.get()
        assert (row.job_id, row.priority) == (job.id, -7)
        assert row.scheduled_at == job.run_after

    def test_every_column_arrives(self, store):
        job = a_job(
            queue_name="mäil",
            priority=100,
            rank=-100,
            arguments='[["\\u0000","\\ud800"],{}]',
            metadata='{"trace":"1"}',
            unique_key="u",
            partition_key="p",
        )
        store.insert([job])
        stored = Job.objects.get()
        for name in ("id", "task_path", "backend", "queue_name", "priority"):
            assert getattr(stored, name) == getattr(job, name)
        for name in ("arguments", "metadata", "unique_key", "enqueued_at"):
            assert getattr(stored, name) == getattr(job, name)
        ready = ReadyExecution.objects.get()
        assert (ready.priority, ready.partition_key) == (-100, "p")
        assert stored.partition_key == "p"

    def test_many_jobs_of_both_kinds(self, store):
        later = NOW + timedelta(hours=1)
        jobs = [a_job(run_after=later if i % 2 else None) for i in range(10)]
        store.insert(jobs)
        assert states() == {
            job.id: "ready" if job.is_due else "scheduled" for job in jobs
        }

    def test_more_jobs_than_fit_into_one_statement(self, store, monkeypatch):
        monkeypatch.setattr(type(store), "chunk_rows", 3)
        monkeypatch.setattr(type(store), "chunk_bytes", 40)
        jobs = [
            a_job(arguments='[["' + "x" * (i % 4) * 20 + '"],{}]') for i in range(11)
        ]
        store.insert(jobs)
        assert sorted(states()) == sorted(ids(jobs))

    def test_nothing_is_nothing(self, store):
        store.insert([])
        assert states() == {}


class TestClaim:
    def test_first_in_first_out(self, store):
        jobs = [a_job() for _ in range(20)]
        store.insert(list(reversed(jobs)))
        assert ids(take(store)) == ids(jobs)

    def test_the_smallest_rank_goes_first(self, store):
        low, high = a_job(rank=5), a_job(rank=-5)
        store.insert([low, high])
        assert ids(take(store)) == [high.id, low.id]

    def test_the_limit_is_kept_and_the_rest_stays(self, store):
        jobs = [a_job() for _ in range(5)]
        store.insert(jobs)
        assert ids(take(store, limit=2)) == ids(jobs[:2])
        assert ids(take(store)) == ids(jobs[2:])
        assert take(store) == []

    def test_a_process_that_is_not_registered_gets_nothing(self, store):
        job = a_job()
        store.insert([job])
        assert take(store, process_id=uuid4()) == []
        assert states() == {job.id: "ready"}

    def test_a_claim_carries_what_is_needed_to_run_the_job(self, store):
        run_after = NOW - timedelta(minutes=1)
        job = a_job(
            priority=3,
            rank=3,
            arguments='[[1],{"a":2}]',
            metadata='{"language":"de"}',
            run_after=run_after,
        )
        store.insert([job])
        process_id = a_process()
        (claim,) = take(store, process_id=process_id)
        row = ClaimedExecution.objects.get()
        assert (row.token, row.process_id) == (claim.token, process_id)
        assert (row.attempts, claim.attempts) == (1, 1)
        assert (claim.task_path, claim.backend) == (job.task_path, "default")
        assert (claim.arguments, claim.priority) == (job.arguments, 3)
        assert (claim.enqueued_at, claim.run_after) == (NOW, run_after)
        assert claim.metadata == job.metadata

    def test_one_queue(self, store):
        store.insert([a_job(queue_name="a"), b := a_job(queue_name="b")])
        assert ids(take(store, "b")) == [b.id]

    def test_names_are_told_apart_by_case(self, store):
        store.insert([a_job(queue_name="Mail"), small := a_job(queue_name="mail")])
        assert ids(take(store, "mail")) == [small.id]

    def test_the_order_of_queues_beats_priority(self, store):
        background = a_job(queue_name="background", rank=-100)
        real_time = a_job(queue_name="real_time", rank=100)
        store.insert([background, real_time])
        assert ids(take(store, "real_time", "background")) == [
            real_time.id,
            background.id,
        ]

    def test_the_second_queue_fills_up_what_the_first_leaves(self, store):
        first = [a_job(queue_name="a") for _ in range(2)]
        second = [a_job(queue_name="b") for _ in range(5)]
        store.insert(second + first)
        assert ids(take(store, "a", "b", limit=4)) == ids(first + second[:2])

    def test_a_prefix_expands_to_the_queues_that_begin_with_it(self, store):
        names = ["beta", "beta_1", "betb", "alpha", "Beta", "be"]
        store.insert([a_job(queue_name=name) for name in names])
        taken = take(store, "beta*")
        assert [claim.queue_name for claim in taken] == ["beta", "beta_1"]

    def test_a_prefix_is_not_a_pattern(self, store):
        store.insert([a_job(queue_name="a_b"), a_job(queue_name="axb")])
        assert [c.queue_name for c in take(store, "a_*")] == ["a_b"]
        store.insert([a_job(queue_name="100%x"), a_job(queue_name="100yx")])
        assert [c.queue_name for c in take(store, "100%*")] == ["100%x"]

    def test_overlapping_patterns_take_each_job_once(self, store):
        store.insert([a_job(queue_name=name) for name in ("a1", "a2", "b", "a1")])
        taken = take(store, "a1", "a*", "*", limit=10)
        assert [c.queue_name for c in taken] == ["a1", "a1", "a2", "b"]
        assert take(store) == []

    def test_a_list_that_ends_with_everything(self, store):
        names = ["c", "b", "a", "urgent"]
        store.insert([a_job(queue_name=name) for name in names])
        taken = take(store, "urgent", "*", limit=3)
        assert [c.queue_name for c in taken] == ["urgent", "c", "b"]

    def test_a_paused_queue_gives_out_nothing(self, store):
        store.insert([a_job(queue_name=name) for name in ("a", "b", "c")])
        Pause.objects.create(queue_name="b")
        assert [c.queue_name for c in take(store, "b")] == []
        assert [c.queue_name for c in take(store, "b*")] == []
        assert [c.queue_name for c in take(store, "*")] == ["a", "c"]
        Pause.objects.all().delete()
        assert [c.queue_name for c in take(store, "*")] == ["b"]

    def test_hostile_names_are_only_names(self, store):
        name = "'; DROP TABLE robust_queue_jobs; -- %s \\ \" {x}"
        store.insert([a_job(queue_name=name)])
        assert [c.queue_name for c in take(store, name)] == [name]
        assert take(store, name, name[:5] + "*") == []

    def test_twenty_queues_by_wildcard(self, store):
        names = [f"tenant_{i:02}" for i in range(20)]
        store.insert([a_job(queue_name=name) for name in names for _ in range(3)])
        taken = take(store, "tenant_*", limit=60)
        assert [c.queue_name for c in taken] == [n for n in names for _ in range(3)]


class TestQueueNames:
    def test_each_name_once_in_order(self, store):
        store.insert([a_job(queue_name=name) for name in "bacab"])
        assert store.queue_names() == ["a", "b", "c"]

    def test_none(self, store):
        assert store.queue_names() == []
        assert store.queue_names("x") == []

    def test_beyond_ascii(self, store):
        names = sorted(["päckchen", "p", "pz", "日本", "日"])
        store.insert([a_job(queue_name=name) for name in names])
        assert store.queue_names("p") == [n for n in names if n.startswith("p")]
        assert store.queue_names("日") == ["日", "日本"]

    def test_more_names_than_a_server_cares_to_recurse_through(self, store):
        names = [f"tenant_{i:04}" for i in range(1_100)]
        store.insert([a_job(queue_name=name) for name in names])
        Pause.objects.bulk_create(Pause(queue_name=name) for name in names[:1_050])
        assert store.queue_names("tenant_") == names[1_050:]
        assert len(take(store, limit=10)) == 10


class TestSettle:
    def test_success(self, store):
        store.insert([job := a_job()])
        (claim,) = take(store)
        assert store.settle([success(claim)]) == {job.id}
        row = FinishedExecution.objects.get()
        assert (row.result, row.worker_id) == ("42", "worker-1@host:42")
        assert (row.attempts, row.started_at) == (1, NOW)
        assert states() == {job.id: "finished"}

    def test_failure(self, store):
        store.insert([job := a_job()])
        (claim,) = take(store)
        assert store.settle([failure(claim, message="päng")]) == {job.id}
        row = FailedExecution.objects.get()
        assert (row.exception_class, row.message) == ("builtins.ValueError", "päng")
        assert states() == {job.id: "failed"}

    def test_many_at_once(self, store):
        store.insert([a_job() for _ in range(9)])
        claims = take(store)
        outcomes = [
            success(c)
            if i % 3 == 0
            else success(c, keep=False)
            if i % 3 == 1
            else failure(c)
            for i, c in enumerate(claims)
        ]
        assert store.settle(outcomes) == set(ids(claims))
        assert sorted(states().values()) == ["failed"] * 3 + ["finished"] * 3

    def test_a_success_that_is_not_kept_leaves_no_trace(self, store):
        store.insert([job := a_job()])
        (claim,) = take(store)
        assert store.settle([success(claim, keep=False)]) == {job.id}
        assert not Job.objects.exists()
        assert states() == {}

    def test_settling_twice_is_refused(self, store):
        store.insert([job := a_job()])
        (claim,) = take(store)
        store.settle([success(claim)])
        assert store.settle([failure(claim)]) == set()
        assert states() == {job.id: "finished"}

    def test_another_token_changes_nothing(self, store):
        store.insert([job := a_job()])
        (claim,) = take(store)
        assert store.settle([success(claim, token=uuid4())]) == set()
        assert states() == {job.id: "claimed"}

    def test_a_lost_claim_does_not_spoil_the_batch(self, store):
        store.insert([a_job(), a_job()])
        lost, kept = take(store)
        store.settle([success(lost)])
        assert store.settle([failure(lost), success(kept)]) == {kept.job_id}
        assert set(states().values()) == {"finished"}

    def test_nothing_is_nothing(self, store):
        assert store.settle([]) == set()


class TestRelease:
    def test_a_released_job_is_as_it_was_before(self, store):
        store.insert([job := a_job(queue_name="q", rank=4)])
        (claim,) = take(store)
        assert store.release([claim], now=NOW) == {job.id}
        row = ReadyExecution.objects.get()
        assert (row.queue_name, row.priority, row.attempts) == ("q", 4, 0)
        (again,) = take(store)
        assert (again.attempts, again.token != claim.token) == (1, True)

    def test_a_stranger_cannot_release(self, store):
        store.insert([job := a_job()])
        (claim,) = take(store)
        store.release([claim], now=NOW)
        take(store)
        assert store.release([claim], now=NOW) == set()
        assert states() == {job.id: "claimed"}

    def test_nothing_is_nothing(self, store):
        assert store.release([], now=NOW) == set()


class TestDispatch:
    def test_what_is_due_becomes_ready_in_its_queue_and_priority(self, store):
        job = a_job(queue_name="q", rank=9, run_after=NOW + timedelta(seconds=10))
        store.insert([job])
        assert store.dispatch(limit=10, now=NOW + timedelta(seconds=9)).moved == 0
        assert store.dispatch(limit=10, now=NOW + timedelta(seconds=10)).moved == 1
        row = ReadyExecution.objects.get()
        assert (row.job_id, row.queue_name, row.priority) == (job.id, "q", 9)
        assert states() == {job.id: "ready"}

    def test_the_earliest_first_up_to_the_limit(self, store):
        jobs = [a_job(run_after=NOW + timedelta(seconds=i)) for i in (3, 1, 2)]
        store.insert(jobs)
        assert store.dispatch(limit=2, now=NOW + timedelta(hours=1)).moved == 2
        assert states()[jobs[0].id] == "scheduled"
        assert store.dispatch(limit=2, now=NOW + timedelta(hours=1)).moved == 1
        assert store.dispatch(limit=2, now=NOW + timedelta(hours=1)).moved == 0
