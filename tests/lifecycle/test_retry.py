"""The operator's retry: one more attempt for what has failed."""

from functools import partial
from uuid import UUID, uuid4

import pytest

from robust_queue.lifecycle import retry as lifecycle_retry
from robust_queue.lifecycle.discard import discard_all
from robust_queue.lifecycle.retry import retry, retry_all
from robust_queue.models import Attempt, ReadyExecution
from robust_queue.testing import drain
from tests.support.invariants import state_of, states
from tests.support.statements import statements
from tests.support.threads import in_threads, started, uncommitted
from tests.testapp.tasks import add, explode, fail_at_once_again, note

pytestmark = pytest.mark.django_db

BACKEND = "robust_queue.backend.RobustQueueBackend"


def failed(count=1, **using):
    results = [explode.using(**using).enqueue() for _ in range(count)]
    drain()
    return [result.id for result in results]


def test_a_failed_job_goes_back_to_its_queue():
    (job_id,) = failed(queue_name="q", priority=5)
    assert retry("default", job_id) is True
    row = ReadyExecution.objects.get()
    assert (row.queue_name, row.priority, row.attempts) == ("q", 5, 1)
    assert explode.get_result(job_id).status == "READY"
    assert len(explode.get_result(job_id).errors) == 1


def test_it_grants_one_more_attempt_each_time():
    result = fail_at_once_again.enqueue()
    drain()
    for attempts in (4, 5):
        assert retry("default", UUID(result.id)) is True
        assert [r.status for r in drain()] == ["FAILED"]
        result.refresh()
        assert (result.attempts, len(result.errors)) == (attempts, attempts)
    assert Attempt.objects.count() == 4


def test_the_priority_counts_as_the_alias_says(settings):
    def alias(order):
        options = {"PRIORITY_ORDER": order}
        return {"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": options}}

    settings.TASKS = alias("smallest_first")
    (job_id,) = failed(priority=5)
    settings.TASKS = alias("largest_first")
    assert retry("default", job_id) is True
    assert ReadyExecution.objects.get().priority == -5


def test_an_alias_that_was_removed(settings):
    (job_id,) = failed(priority=5)
    settings.TASKS = {"new": {"BACKEND": BACKEND, "QUEUES": []}}
    assert retry("default", job_id) is True
    assert ReadyExecution.objects.get().priority == 5


def test_only_what_has_failed():
    waiting = note.enqueue()
    assert retry("default", waiting.id) is False
    done = add.enqueue(1)
    drain()
    assert retry("default", done.id) is False
    assert retry("default", uuid4()) is False
    assert set(states().values()) == {"finished"}


def test_many_at_once_in_batches(monkeypatch):
    monkeypatch.setattr(lifecycle_retry, "BATCH_SIZE", 2)
    ids = failed(5)
    assert retry_all("default", [*ids, ids[0], uuid4()]) == 5
    assert set(states().values()) == {"ready"}
    assert retry_all("default", ids) == 0
    assert retry_all("default", []) == 0


def test_the_number_of_statements_is_that_of_a_batch():
    ids = failed(20)
    with statements() as found:
        assert retry_all("default", ids) == 20
    # One of them asks which of the jobs need slots.
    assert len(found.changes) == 8


@pytest.mark.django_db(transaction=True)
def test_of_several_operators_one_retries_a_job():
    ids = failed(40)
    forwards, backwards = ids, ids[::-1]
    counts = in_threads(
        [
            lambda: retry_all("default", forwards),
            lambda: retry_all("default", backwards),
        ]
        * 2
    )
    assert sum(counts) == 40
    assert set(states().values()) == {"ready"}
    assert Attempt.objects.count() == 40


@pytest.mark.usefixtures("row_locks")
def test_the_second_operator_waits_for_the_first_and_finds_nothing():
    (job_id,) = failed()
    with uncommitted(retry, "default", job_id) as first:
        assert first is True
        second = started(retry, "default", job_id)
    assert second.result(30) is False
    assert list(states().values()) == ["ready"]


@pytest.mark.django_db(transaction=True)
def test_retry_and_discard_leave_no_half_of_a_job():
    for _ in range(5):
        ids = failed(10)
        in_threads(
            [
                partial(retry_all, "default", ids),
                partial(discard_all, "default", ids[::-1]),
            ]
        )
        assert states() == {}, "discarded while it had failed, or when it was ready"
        assert not Attempt.objects.exists()


@pytest.mark.usefixtures("row_locks")
def test_a_retried_job_is_claimed_only_when_the_retry_is_committed():
    (job_id,) = failed()
    with uncommitted(retry, "default", job_id):
        assert drain() == []
        assert state_of(explode.get_result(job_id)) == "failed"
    assert [r.id for r in drain()] == [job_id]
