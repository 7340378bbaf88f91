"""Unique tasks elsewhere: other databases, schedules, coroutines; and their price."""

import pytest
from django.db import connection, transaction

from robust_queue import enqueue_all
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.recur import recur
from robust_queue.lifecycle.settle import settle
from robust_queue.models import Job, UniqueLock
from tests.support.in_process import in_process
from tests.support.invariants import states
from tests.support.outcomes import success
from tests.support.processes import a_process
from tests.support.recurring import MINUTE, NOON, due, history, instants
from tests.support.statements import statements
from tests.testapp.unique_tasks import (
    latest_elsewhere,
    once,
    once_elsewhere,
    until_started,
    until_started_async,
)

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


class TestAnotherDatabase:
    """Ids are given out before the commit, and have to lead somewhere."""

    def test_a_conflict_is_stored_under_the_id_that_was_given(self):
        with transaction.atomic():
            first, second = once_elsewhere.enqueue(1), once_elsewhere.enqueue(1)
            assert first.id != second.id
            assert states("other") == {}
        first.refresh()
        second.refresh()
        assert (first.status, second.status) == ("READY", "FAILED")
        assert second.errors[0].exception_class.__name__ == "TaskDiscarded"
        assert str(UniqueLock.objects.using("other").get().job_id) == first.id

    def test_so_it_is_within_one_call(self):
        with transaction.atomic():
            enqueue_all([once_elsewhere.bind(1), once_elsewhere.bind(1)])
        assert sorted(states("other").values()) == ["failed", "ready"]

    def test_to_replace_works_as_usual(self):
        with transaction.atomic():
            latest_elsewhere.enqueue(7, "old")
            second = latest_elsewhere.enqueue(7, "new")
        assert [str(each) for each in states("other")] == [second.id]

    def test_one_that_runs_is_not_replaced(self):
        latest_elsewhere.enqueue(7, "old")
        claim("other", process_id=a_process("other"), queues=("*",), limit=1)
        with transaction.atomic():
            second = latest_elsewhere.enqueue(7, "new")
        second.refresh()
        assert second.status == "FAILED"

    def test_without_a_transaction_the_result_is_that_of_the_holder(self):
        first = once_elsewhere.enqueue(1)
        assert once_elsewhere.enqueue(1).id == first.id


def test_an_instant_whose_work_is_still_to_be_done_makes_no_job():
    due(once)
    recur("default", now=NOON)
    recur("default", now=NOON + MINUTE)
    assert instants() == [NOON]
    job, skipped = Job.objects.get(), history()[1]
    assert (skipped.run_at, skipped.outcome) == (NOON + MINUTE, "skipped")
    assert str(job.id) in skipped.reason


@pytest.mark.parametrize("task", [until_started, until_started_async])
def test_a_worker_lets_go_before_the_code_runs(task, performed):
    task.enqueue("value")
    with in_process(coroutines=5) as worker:
        worker.until(lambda: performed)
        worker.drain()
    assert performed == [0]
    assert not UniqueLock.objects.exists()


class TestStatements:
    """A unique job costs little, and others nothing: that is pinned elsewhere."""

    def test_of_an_enqueue(self):
        with statements() as found:
            once.enqueue(1)
        counts = {"postgresql": 2, "sqlite": 3, "mysql": 4}
        assert len(found.changes) == counts[connection.vendor]

    def test_of_a_thousand(self):
        with statements() as found:
            enqueue_all(once.bind(i) for i in range(1000))
        assert UniqueLock.objects.count() == 1000
        counts = {"postgresql": 2, "sqlite": 3, "mysql": 4}
        assert len(found.changes) == counts[connection.vendor]

    def test_of_a_settle(self):
        enqueue_all(once.bind(i) for i in range(20))
        claims = claim("default", process_id=a_process(), queues=("*",), limit=20)
        with statements() as found:
            settle("default", [success(each) for each in claims])
        counts = {"postgresql": 1, "sqlite": 4, "mysql": 5}
        assert len(found.changes) == counts[connection.vendor]
        assert not UniqueLock.objects.exists()
