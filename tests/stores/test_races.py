"""Two connections at once. Each test names the race that must not be lost."""

from dataclasses import replace

import pytest
from django.db import connection, transaction
from django.utils import timezone

from robust_queue.exceptions import UndiscardableError
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.failure import failed_to_record
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.settle import settle
from robust_queue.models import Attempt, ClaimedExecution, FinishedExecution
from robust_queue.stores import conflicts
from tests.support.invariants import state_of, states
from tests.support.outcomes import success
from tests.support.processes import a_process
from tests.support.threads import in_thread, in_threads, started, uncommitted
from tests.testapp.tasks import note

pytestmark = pytest.mark.django_db(transaction=True)


def take(limit=1000, queues=("*",)):
    return claim("default", process_id=a_process(), queues=queues, limit=limit)


def to_be_tried_again(claimed):
    outcome = failed_to_record(success(claimed), ValueError("boom"))
    return replace(outcome, retry_at=outcome.finished_at)


def many(count, **using):
    return [note.using(**using).enqueue(i) for i in range(count)]


def test_no_job_is_claimed_by_two():
    many(200)
    taken = in_threads([lambda: [take(10) for _ in range(8)]] * 4)
    found = [c.job_id for calls in taken for batch in calls for c in batch]
    assert len(found) == len(set(found)) == 200


def test_no_job_is_dispatched_by_two():
    later = timezone.now() + timezone.timedelta(hours=1)
    many(200, run_after=later)
    moved = in_threads(
        [lambda: [dispatch_due("default", limit=20, now=later) for _ in range(10)]] * 3
    )
    assert sum(map(sum, moved)) == 200
    assert set(states().values()) == {"ready"}


@pytest.mark.usefixtures("row_locks")
def test_a_poll_passes_over_what_another_holds():
    first, second = many(2)
    with uncommitted(take, 1) as (held,):
        assert str(held.job_id) == first.id
        assert [str(c.job_id) for c in take()] == [second.id]


@pytest.mark.usefixtures("row_locks")
def test_a_poll_locks_no_more_than_it_takes():
    many(10)
    with uncommitted(take, 3) as held:
        assert len(held) == 3
        assert len(take()) == 7


@pytest.mark.usefixtures("row_locks")
@pytest.mark.parametrize("queues", [("*",), ("a", "b"), ("a*", "b*"), ("b", "*")])
def test_a_poll_of_several_queues_locks_no_more_than_it_takes(queues):
    many(5, queue_name="a")
    many(5, queue_name="b")
    with uncommitted(take, 7, queues) as held:
        assert len(held) == 7
        assert len(take(100, queues)) == 3


@pytest.mark.usefixtures("row_locks")
def test_a_claim_that_rolls_back_leaves_the_job_ready():
    (result,) = many(1)

    def give_up():
        with transaction.atomic():
            take()
            transaction.set_rollback(True)

    in_thread(give_up)
    assert state_of(result) == "ready"


@pytest.mark.usefixtures("row_locks")
def test_discard_waits_for_a_claim_and_then_loses():
    (result,) = many(1)
    with uncommitted(take):
        racing = started(discard, "default", result.id)
    with pytest.raises(UndiscardableError):
        racing.result(30)
    assert state_of(result) == "claimed"


@pytest.mark.usefixtures("row_locks")
def test_a_claim_passes_over_what_is_being_discarded():
    (result,) = many(1)
    with uncommitted(discard, "default", result.id):
        assert take() == []
    assert states() == {}


@pytest.mark.usefixtures("row_locks")
def test_discard_meets_again_what_is_being_dispatched():
    later = timezone.now() + timezone.timedelta(hours=1)
    (result,) = many(1, run_after=later)
    with uncommitted(dispatch_due, "default", now=later):
        racing = started(discard, "default", result.id)
    assert racing.result(30) is True
    assert states() == {}


@pytest.mark.usefixtures("row_locks")
def test_a_job_enqueued_in_an_open_transaction_is_not_seen():
    with uncommitted(note.enqueue):
        assert take() == []
    assert len(take()) == 1


def test_one_of_two_settlers_wins():
    many(50)
    claims = take()
    forwards = [success(c) for c in claims]
    backwards = [success(c) for c in reversed(claims)]
    won = in_threads(
        [lambda: settle("default", forwards), lambda: settle("default", backwards)]
    )
    assert sum(map(len, won)) == 50
    assert FinishedExecution.objects.count() == 50
    assert not ClaimedExecution.objects.exists()


def test_one_of_two_settlers_keeps_the_attempt():
    many(50)
    claims = take()
    forwards = [to_be_tried_again(c) for c in claims]
    backwards = [to_be_tried_again(c) for c in reversed(claims)]
    won = in_threads(
        [lambda: settle("default", forwards), lambda: settle("default", backwards)]
    )
    assert sum(map(len, won)) == 50
    assert Attempt.objects.count() == 50
    assert set(states().values()) == {"scheduled"}


def test_settle_and_release_cannot_both_win():
    for _ in range(10):
        many(10)
        claims = take()
        outcomes = [success(c) for c in claims]
        settled, released = in_threads(
            [
                lambda outcomes=outcomes: settle("default", outcomes),
                lambda claims=claims: release("default", list(reversed(claims))),
            ]
        )
        assert not settled & released
        assert len(settled | released) == len(claims)
        standing = states()
        assert all(standing[job_id] == "finished" for job_id in settled)
        assert all(standing[job_id] == "ready" for job_id in released)


@pytest.mark.usefixtures("row_locks")
def test_a_worker_that_lost_its_claim_changes_nothing():
    (result,) = many(1)
    (mine,) = take()
    in_thread(release, "default", [mine])
    (theirs,) = in_thread(take)
    assert settle("default", [success(mine)]) == set()
    assert release("default", [mine]) == set()
    assert ClaimedExecution.objects.get().token == theirs.token
    assert state_of(result) == "claimed"


def test_the_commit_is_what_counts_for_other_connections():
    with transaction.atomic():
        result = note.enqueue()
        assert state_of(result) == "ready"
        if connection.vendor != "sqlite":
            assert in_thread(states) == {}
    assert list(in_thread(states).values()) == ["ready"]


@pytest.mark.usefixtures("row_locks")
def test_a_claim_sees_what_it_locks_at_any_level_of_isolation():
    """A poll reads what is committed now, whatever the transaction saw before."""
    if connection.vendor != "mysql":
        pytest.skip("a claim is several statements with locks on MariaDB only")
    options = connection.settings_dict["OPTIONS"]
    options["isolation_level"] = "repeatable read"
    connection.close()
    try:
        with transaction.atomic():
            assert states() == {}
            in_thread(many, 3)
            assert len(take()) == 3
    finally:
        del options["isolation_level"]
        connection.close()


@pytest.mark.usefixtures("row_locks")
@pytest.mark.parametrize("others", [1, 10])
@pytest.mark.parametrize("mine", [2, 10, 50])
def test_a_claim_waits_neither_for_another_claim_nor_for_an_enqueue(
    others, mine, monkeypatch
):
    """Small tables tempt MariaDB to read, and so to lock, more than was asked for."""
    monkeypatch.setattr(conflicts, "PATIENCE", -1)
    if connection.vendor == "mysql":
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
    many(others + mine)
    with uncommitted(take, others), uncommitted(many, others):
        assert len(take(mine)) == mine
    connection.close()
