"""All jobs that match: which they are, and the walk over them."""

import threading
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import connection
from django.utils import timezone

from robust_queue.exceptions import UndiscardableError
from robust_queue.identifiers import new_job_id
from robust_queue.lifecycle import selection
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import discard_matching
from robust_queue.lifecycle.retry import retry, retry_matching
from robust_queue.lifecycle.selection import (
    Filter,
    Tally,
    count,
    standing,
    walk,
)
from robust_queue.models import Attempt, FailedExecution, Job
from robust_queue.policies import Kind
from tests.support import rows
from tests.support.invariants import states
from tests.support.processes import a_process
from tests.support.statements import statements
from tests.support.threads import in_threads, started, uncommitted

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def many_failed(number):
    """So many failed jobs, written at once."""
    jobs = [
        Job(
            id=new_job_id(),
            task_path=rows.TASK,
            backend="default",
            queue_name="default",
            arguments=rows.ARGUMENTS,
            enqueued_at=NOW,
        )
        for _ in range(number)
    ]
    failures = [
        FailedExecution(
            job=job, attempts=1, worker_id="w", started_at=NOW, finished_at=NOW
        )
        for job in jobs
    ]
    Job.objects.bulk_create(jobs, batch_size=500)
    FailedExecution.objects.bulk_create(failures, batch_size=500)
    return [job.id for job in jobs]


def found(**conditions):
    return [pk for ids in walk("default", Filter(**conditions)) for pk in ids]


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(selection, "BATCH_SIZE", 2)


class TestFilter:
    def test_failed_jobs_are_meant_if_nothing_is_said(self):
        row = rows.failed()
        rows.ready()
        assert found() == [row.pk]

    @pytest.mark.parametrize("state", ["scheduled", "ready", "blocked", "claimed"])
    def test_state(self, state):
        rows.failed()
        row = getattr(rows, state)()
        assert found(state=state) == [row.pk]

    @pytest.mark.parametrize("state", ["failed", "ready", "scheduled", "blocked"])
    def test_task_and_queue(self, state):
        make = getattr(rows, state)
        mail = make(rows.job(queue_name="mail", task_path="shop.tasks.send"))
        other = make(rows.job(queue_name="Mail", task_path="shop.tasks.Send"))
        assert found(state=state, queue_name="mail") == [mail.pk]
        assert found(state=state, task_path="shop.tasks.Send") == [other.pk]
        assert found(state=state, task_path="shop.tasks.Send", queue_name="mail") == []

    @pytest.mark.parametrize("kind", Kind)
    def test_kind(self, kind):
        by_kind = {each: rows.failed(kind=each.value).pk for each in Kind}
        assert found(kind=kind) == [by_kind[kind]]

    @pytest.mark.parametrize(
        "name", ["shop.errors.CardRefused", "errors.CardRefused", "CardRefused"]
    )
    def test_exception_by_its_path_or_the_end_of_it(self, name):
        row = rows.failed(exception_class="shop.errors.CardRefused")
        rows.failed(exception_class="shop.errors.NotCardRefused")
        assert found(exception_class=name) == [row.pk]

    def test_since_and_until(self):
        ages = [timedelta(hours=hours) for hours in (3, 2, 1)]
        old, middle, new = (rows.failed(finished_at=NOW - age).pk for age in ages)
        assert found(since=NOW - timedelta(hours=2)) == [middle, new]
        assert found(until=NOW - timedelta(hours=2)) == [old]
        waiting = rows.ready()
        assert found(state="ready", since=waiting.created_at) == [waiting.pk]
        assert found(state="ready", until=waiting.created_at) == []

    def test_ids(self, small_batches):
        made = [rows.failed().pk for _ in range(5)]
        waiting = rows.ready().pk
        assert found(ids=[*reversed(made), waiting, made[0]]) == made
        assert count("default", Filter(ids=[*made, waiting])) == 5
        assert found(ids=[]) == []

    @pytest.mark.parametrize(
        ("conditions", "problem"),
        [
            ({"state": "pending"}, "state must be one of"),
            ({"state": "ready", "kind": Kind.CRASHED}, "Only failed jobs"),
            ({"state": "ready", "exception_class": "E"}, "Only failed jobs"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, conditions, problem):
        with pytest.raises(ValueError, match=problem):
            Filter(**conditions)


class TestWalk:
    def test_in_batches_in_the_order_of_the_jobs(self, small_batches):
        made = [rows.failed().pk for _ in range(5)]
        batches = list(walk("default", Filter()))
        assert batches == [made[:2], made[2:4], made[4:]]

    def test_a_full_last_batch(self, small_batches):
        made = [rows.failed().pk for _ in range(4)]
        assert list(walk("default", Filter())) == [made[:2], made[2:]]
        assert list(walk("default", Filter(state="ready"))) == []

    def test_what_fails_meanwhile_is_left_to_the_next_walk(self, small_batches):
        """Else a walk over jobs that fail as fast as they are met would never end."""
        made = [rows.failed().pk for _ in range(4)]
        met = []
        for ids in walk("default", Filter()):
            met += ids
            rows.failed()
            rows.failed()
        assert met == made

    def test_a_job_that_is_gone_meanwhile_is_not_met(self, small_batches):
        made = [rows.failed() for _ in range(4)]
        batches = walk("default", Filter())
        assert next(batches) == [made[0].pk, made[1].pk]
        made[2].job.delete()
        assert next(batches) == [made[3].pk]


class TestMany:
    @pytest.mark.parametrize("verb", [retry_matching, discard_matching])
    def test_each_batch_takes_as_many_statements_as_any_other(self, verb):
        many_failed(2_000)
        seen, sent_so_far = [], []

        def look_on(tally):
            seen.append(tally.done)
            sent_so_far.append(len(connection.queries_log))

        with statements():
            tally = verb("default", Filter(), on_progress=look_on)
        assert tally == Tally(2_000, 2_000)
        assert seen == [500, 1_000, 1_500, 2_000]
        (each_time,) = {after - before for before, after in pairwise(sent_so_far)}
        assert each_time <= 15
        assert set(states().values()) <= {"ready"}

    def test_only_what_matches_is_retried(self):
        mine = rows.failed(rows.job(queue_name="mail")).pk
        other = rows.failed().pk
        assert retry_matching("default", Filter(queue_name="mail")) == Tally(1, 1)
        assert states() == {mine: "ready", other: "failed"}
        assert Attempt.objects.get().job_id == mine

    @pytest.mark.parametrize("state", ["failed", "scheduled", "ready", "blocked"])
    def test_only_what_matches_is_discarded(self, state):
        make = getattr(rows, state)
        make(rows.job(queue_name="mail"))
        other = make().pk
        wanted = Filter(state=state, queue_name="mail")
        assert discard_matching("default", wanted) == Tally(1, 1)
        assert states() == {other: state}

    def test_only_failed_jobs_are_retried_and_no_claimed_one_is_discarded(self):
        row = rows.claimed()
        with pytest.raises(ValueError, match="Only failed jobs"):
            retry_matching("default", Filter(state="scheduled"))
        with pytest.raises(UndiscardableError, match="claimed"):
            discard_matching("default", Filter(state="claimed"))
        assert states() == {row.pk: "claimed"}

    def test_who_watches_may_stop_between_two_batches(self, small_batches):
        for _ in range(5):
            rows.failed()
        tally = retry_matching("default", Filter(), on_progress=lambda tally: False)
        assert tally == Tally(2, 2)
        assert sorted(states().values()) == ["failed"] * 3 + ["ready"] * 2


class TestMeanwhile:
    """Somebody else is faster, between the look at a batch and its change."""

    @pytest.fixture
    def overtaken(self, monkeypatch):
        def overtake(by):
            inner = selection.walk

            def walk_and_be_overtaken(*args):
                for ids in inner(*args):
                    by(ids)
                    yield ids

            monkeypatch.setattr(selection, "walk", walk_and_be_overtaken)

        return overtake

    def test_a_claimed_job_refuses_to_be_discarded(self, overtaken):
        first, second = rows.ready(), rows.ready()
        overtaken(lambda ids: claim("default", process_id=a_process(), limit=1))
        tally = discard_matching("default", Filter(state="ready"))
        assert tally == Tally(2, 1, {"claimed": 1})
        assert states() == {first.pk: "claimed"}
        assert second.pk not in states()

    def test_a_failed_job_that_was_retried_is_not_discarded(self, overtaken):
        first, _ = rows.failed(), rows.failed()
        overtaken(lambda ids: retry("default", first.pk))
        assert discard_matching("default", Filter()) == Tally(2, 1, {"ready": 1})
        assert states() == {first.pk: "ready"}

    def test_a_scheduled_job_that_has_become_ready_is_discarded(self, overtaken):
        row = rows.scheduled()

        def dispatch(ids):
            rows.ready(row.job)
            row.delete()

        overtaken(dispatch)
        wanted = Filter(state="scheduled")
        assert discard_matching("default", wanted) == Tally(1, 1)
        assert states() == {}

    def test_a_job_that_is_gone_is_neither_retried_nor_discarded(self, overtaken):
        first, second, third = (rows.failed() for _ in range(3))
        overtaken(lambda ids: Job.objects.filter(pk=first.pk).delete())
        expected = Tally(3, 2, {"not failed any more": 1})
        assert retry_matching("default", Filter()) == expected
        assert states() == {second.pk: "ready", third.pk: "ready"}
        rows.failed(), rows.failed()
        last = FailedExecution.objects.latest("pk")
        overtaken(lambda ids: last.job.delete())
        assert discard_matching("default", Filter()) == Tally(2, 1, {"gone": 1})


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_a_job_is_either_retried_or_discarded(self):
        for _ in range(3):
            many_failed(60)
            retried, discarded = in_threads(
                [
                    lambda: retry_matching("default", Filter()),
                    lambda: discard_matching("default", Filter()),
                ]
            )
            assert retried.done + discarded.done == 60
            assert list(states().values()) == ["ready"] * retried.done
            assert Attempt.objects.count() == retried.done
            Job.objects.all().delete()

    def test_of_several_operators_one_retries_a_job(self):
        many_failed(60)
        tallies = in_threads([lambda: retry_matching("default", Filter())] * 3)
        assert sum(tally.done for tally in tallies) == 60
        assert set(states().values()) == {"ready"}
        assert Attempt.objects.count() == 60

    @pytest.mark.usefixtures("row_locks")
    def test_the_second_waits_for_the_first_and_passes_over(self, monkeypatch):
        (job_id,) = many_failed(1)
        has_looked, look = threading.Event(), selection.walk

        def look_and_tell(*args):
            for ids in look(*args):
                has_looked.set()
                yield ids

        monkeypatch.setattr(selection, "walk", look_and_tell)
        with uncommitted(retry, "default", job_id):
            discarding = started(discard_matching, "default", Filter())
            assert has_looked.wait(30)
        assert discarding.result(30) == Tally(1, 0, {"ready": 1})
        assert states() == {job_id: "ready"}


def test_where_jobs_stand():
    makers = ("failed", "ready", "scheduled", "blocked", "claimed", "finished")
    made = {getattr(rows, state)().pk: state for state in makers}
    with statements() as sent:
        assert standing("default", [*made, new_job_id()]) == made
    assert len(sent) == 1
    assert not any(wide in sent[0] for wide in ("arguments", "traceback", '"result"'))
