"""Two connections at once, and one key. Each test names the race.

Whatever the order: never more have a slot than may, and nobody waits while one is free.
"""

import time
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from robust_queue import Concurrency, Unique, task
from robust_queue.aliases import options_of
from robust_queue.declaration import Call
from robust_queue.exceptions import UndiscardableError
from robust_queue.lifecycle import recount
from robust_queue.lifecycle.admit import limits_of_ids, promote
from robust_queue.lifecycle.cancel import cancel
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.enqueue import Destination, prepare
from robust_queue.lifecycle.give_way import give_way
from robust_queue.lifecycle.recover import claims_of, give_up
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.settle import settle
from robust_queue.lifecycle.unblock import Unblocking
from robust_queue.models import (
    BlockedExecution,
    ClaimedExecution,
    Process,
    ReadyExecution,
    Semaphore,
)
from robust_queue.stores import store_for
from tests.support.invariants import state_of, states
from tests.support.outcomes import success
from tests.support.processes import a_process
from tests.support.supervisors import until
from tests.support.threads import in_thread, in_threads, started, uncommitted
from tests.testapp.limited_tasks import by_keys, one_by_account, two_by_account

pytestmark = pytest.mark.django_db(transaction=True)

DATABASE = "default"


def enqueue(of=one_by_account):
    return of.enqueue("a")


def take(limit=1, process=None):
    return claim(DATABASE, process_id=process or a_process(), limit=limit)


def finish(claims):
    return settle(DATABASE, [success(each) for each in claims])


def stored_and_not_promoted(of=one_by_account):
    """A job of somebody who has died between the two."""
    destination = Destination("default", DATABASE, options_of("default"))
    prepared = prepare(Call(of, ["a"]), destination)
    store_for(DATABASE).insert([prepared.job])
    return prepared.result


@pytest.fixture(autouse=True)
def counted_right():
    yield
    assert recount.miscounted(DATABASE) == []
    for semaphore in Semaphore.objects.all():
        waits = BlockedExecution.objects.filter(concurrency_key=semaphore.key).exists()
        assert not (waits and semaphore.value > 0), "Somebody waits in vain."


class TestLostWakeUp:
    """The one blocks a job, the other frees the slot, and neither sees the other."""

    @pytest.mark.usefixtures("row_locks")
    def test_the_slot_is_freed_before_the_job_is_committed(self):
        enqueue()
        (held,) = take()
        with uncommitted(enqueue) as later:
            finish([held])
            assert not BlockedExecution.objects.exists()
        assert state_of(later) == "ready"

    @pytest.mark.usefixtures("row_locks")
    def test_the_job_is_committed_before_the_slot_is_freed(self):
        enqueue()
        (held,) = take()
        with uncommitted(finish, [held]):
            racing = started(enqueue)
            until(BlockedExecution.objects.exists)
        assert state_of(racing.result(30)) == "ready"

    def test_the_slot_is_freed_between_the_job_and_its_promotion(self):
        enqueue()
        (held,) = take()
        later = stored_and_not_promoted()
        finish([held])
        assert state_of(later) == "ready"
        promote(DATABASE, limits_of_ids(DATABASE, [later.id]))
        assert Semaphore.objects.get().value == 0

    def test_whoever_should_have_promoted_it_has_died(self):
        later = stored_and_not_promoted()
        assert state_of(later) == "blocked"
        assert Unblocking(DATABASE).sweep() == 1
        assert state_of(later) == "ready"


@pytest.mark.usefixtures("row_locks")
def test_nobody_waits_for_who_is_being_cancelled():
    by_keys.enqueue(["a"])
    several = by_keys.enqueue(["a", "b"])
    (held,) = take()
    with uncommitted(cancel, DATABASE, several.id):
        # Nor asks again and again.
        assert started(finish, [held]).result(10)
    assert state_of(several) == "failed"


class TestTooMany:
    """Several promote, and each sees the same free slot."""

    def test_at_the_same_time(self):
        results = [stored_and_not_promoted() for _ in range(8)]
        limits = limits_of_ids(DATABASE, [results[0].id])
        found = in_threads([lambda: promote(DATABASE, limits)] * 4)
        assert sum(map(len, found)) == 1
        assert ReadyExecution.objects.count() == 1

    def test_at_the_same_time_with_more_than_one_slot(self):
        results = [stored_and_not_promoted(two_by_account) for _ in range(8)]
        limits = limits_of_ids(DATABASE, [results[0].id])
        found = in_threads([lambda: promote(DATABASE, limits)] * 4)
        assert sum(map(len, found)) == 2

    @pytest.mark.usefixtures("row_locks")
    def test_one_has_taken_it_and_not_committed(self):
        first, _ = [stored_and_not_promoted() for _ in range(2)]
        limits = limits_of_ids(DATABASE, [first.id])

        def promote_alone():
            return store_for(DATABASE).promote(
                limits, limits_of=lambda job_id: limits, now=timezone.now()
            )

        with uncommitted(promote_alone) as promoted:
            assert len(promoted) == 1
            racing = started(promote_alone)
        assert racing.result(30) == {}
        assert sorted(states().values()) == ["blocked", "ready"]

    def test_enqueuers_at_the_same_time(self):
        in_threads([lambda: [enqueue() for _ in range(10)]] * 4)
        assert ReadyExecution.objects.count() == 1
        assert BlockedExecution.objects.count() == 39


class TestDoubleRelease:
    """One claim ends twice, and gives two slots back."""

    def test_by_two_at_the_same_time(self):
        for _ in range(4):
            enqueue(two_by_account)
        held = take(2)
        in_threads([lambda: finish(held[:1])] * 3)
        assert sorted(states().values()) == ["blocked", "claimed", "finished", "ready"]

    @pytest.mark.usefixtures("row_locks")
    def test_by_its_worker_and_by_who_takes_it_for_dead(self):
        results = [enqueue() for _ in range(3)]
        process = a_process()
        (held,) = take(process=process)
        dead = claims_of(DATABASE, process)
        error = RuntimeError("gone")
        with uncommitted(give_up, DATABASE, dead, error, worker_id="w"):
            racing = started(finish, [held])
        assert racing.result(30) == set()
        assert [state_of(each) for each in results] == ["failed", "ready", "blocked"]


class TestExpired:
    """The holder outlives the duration of its slot, and a second one is let in."""

    def maintain(self):
        Semaphore.objects.update(expires_at=timezone.now() - timedelta(days=1))
        recount.repair(DATABASE)
        recount.forget_idle(DATABASE)
        give_way(DATABASE)
        Unblocking(DATABASE).sweep()

    def test_while_it_runs(self):
        enqueue()
        later = enqueue()
        take()
        in_thread(self.maintain)
        assert state_of(later) == "blocked"
        assert Semaphore.objects.get().value == 0

    @pytest.mark.usefixtures("row_locks")
    def test_while_it_ends(self):
        enqueue()
        later = enqueue()
        held = take()
        with uncommitted(finish, held):
            racing = started(self.maintain)
            assert state_of(later) == "blocked"
        racing.result(30)
        assert state_of(later) == "ready"
        assert Semaphore.objects.get().value == 0


class TestReleasedClaim:
    """A claim goes back while its slot is given to another one."""

    @pytest.mark.usefixtures("row_locks")
    def test_it_keeps_its_slot(self):
        first = enqueue()
        held = take()
        with uncommitted(release, DATABASE, held):
            later = enqueue()
        assert [state_of(first), state_of(later)] == ["ready", "blocked"]

    @pytest.mark.usefixtures("row_locks")
    def test_it_is_released_and_has_ended(self):
        enqueue()
        later = enqueue()
        held = take()
        with uncommitted(finish, held):
            racing = started(release, DATABASE, held)
        assert racing.result(30) == set()
        assert state_of(later) == "ready"


class TestDiscardedReady:
    """A ready job is discarded while it is claimed; its slot goes, or stays."""

    @pytest.mark.usefixtures("row_locks")
    def test_the_claim_is_first(self):
        first, later = enqueue(), enqueue()
        with uncommitted(take):
            racing = started(discard, DATABASE, first.id)
        with pytest.raises(UndiscardableError):
            racing.result(30)
        assert [state_of(first), state_of(later)] == ["claimed", "blocked"]

    @pytest.mark.usefixtures("row_locks")
    def test_the_discard_is_first(self):
        first, later = enqueue(), enqueue()
        with uncommitted(discard, DATABASE, first.id):
            assert take() == []
        assert list(states().values()) == ["ready"]
        assert state_of(later) == "ready"


class TestKilledWorker:
    """Its claims go to somebody else, who must not let anybody in beside them."""

    def test_its_slot_is_free_when_its_claim_is_over(self):
        first, later = enqueue(), enqueue()
        process = a_process()
        take(process=process)
        Process.objects.filter(pk=process).delete()
        assert state_of(later) == "blocked"
        dead = claims_of(DATABASE, process)
        give_up(DATABASE, dead, RuntimeError("gone"), worker_id="w")
        assert [state_of(first), state_of(later)] == ["failed", "ready"]

    @pytest.mark.usefixtures("row_locks")
    def test_nobody_has_its_slot_before_that(self):
        enqueue()
        later = enqueue()
        process = a_process()
        take(process=process)
        Process.objects.filter(pk=process).delete()
        dead, error = claims_of(DATABASE, process), RuntimeError("gone")
        with uncommitted(give_up, DATABASE, dead, error, worker_id="w"):
            racing = started(promote, DATABASE, limits_of_ids(DATABASE, [later.id]))
            assert state_of(later) == "blocked"
        racing.result(30)
        assert state_of(later) == "ready"
        assert Semaphore.objects.get().value == 0


class TestChains:
    """Claims that share a slot: it is free when the last of them is over."""

    def chained(self, count=3):
        process = a_process()
        for _ in range(count + 2):
            enqueue()
        (head,) = take(process=process)
        found = store_for(DATABASE).follow(
            [head], most=count, process_id=process, token=uuid4(), now=timezone.now()
        )
        return head, found[head.job_id]

    def holders(self):
        return sorted(states().values())

    def test_they_have_one_slot(self):
        _, followers = self.chained()
        assert len(followers) == 3
        assert self.holders() == ["blocked"] + ["claimed"] * 4
        assert Semaphore.objects.get().value == 0
        assert [each.attempts for each in followers] == [1, 1, 1]

    def test_the_first_is_over(self):
        head, _ = self.chained()
        finish([head])
        assert self.holders() == ["blocked"] + ["claimed"] * 3 + ["finished"]

    def test_all_are_over(self):
        head, followers = self.chained()
        finish([head, *followers])
        assert self.holders() == ["finished"] * 4 + ["ready"]

    def test_one_by_one(self):
        head, followers = self.chained()
        for each in (head, *followers):
            assert ReadyExecution.objects.count() == 0
            finish([each])
        assert ReadyExecution.objects.count() == 1

    def test_the_rest_goes_back_while_the_first_goes_on(self):
        _, followers = self.chained()
        release(DATABASE, followers)
        assert self.holders() == ["blocked"] * 4 + ["claimed"]
        attempts = BlockedExecution.objects.values_list("attempts", flat=True)
        assert set(attempts) == {0}

    def test_all_go_back(self):
        head, followers = self.chained()
        release(DATABASE, [head, *followers])
        assert self.holders() == ["blocked"] * 4 + ["ready"]
        assert ReadyExecution.objects.get().job_id == head.job_id

    def test_the_first_goes_back_alone(self):
        head, followers = self.chained()
        release(DATABASE, [head])
        assert self.holders() == ["blocked"] * 2 + ["claimed"] * 3
        release(DATABASE, followers)
        assert self.holders() == ["blocked"] * 4 + ["ready"]

    def test_who_goes_back_alone_may_have_a_slot_of_its_own(self):
        process = a_process()
        for _ in range(3):
            enqueue(two_by_account)
        head, other = take(2, process=process)
        found = store_for(DATABASE).follow(
            [head], most=1, process_id=process, token=uuid4(), now=timezone.now()
        )
        finish([other])
        release(DATABASE, found[head.job_id])
        assert self.holders() == ["claimed", "finished", "ready"]

    def test_the_first_is_claimed_again_while_others_go_on(self):
        process = a_process()
        for _ in range(3):
            enqueue(two_by_account)
        head, other = take(2, process=process)
        store_for(DATABASE).follow(
            [head], most=1, process_id=process, token=uuid4(), now=timezone.now()
        )
        finish([other])
        release(DATABASE, [head])
        assert [each.job_id for each in take()] == [head.job_id]
        assert Semaphore.objects.get().value == 0

    def test_two_end_parts_of_it_at_the_same_time(self):
        head, followers = self.chained()
        parts = [[head, followers[0]], followers[1:]]
        in_threads([lambda part=part: finish(part) for part in parts])
        assert self.holders() == ["finished"] * 4 + ["ready"]

    def test_one_ends_and_another_gives_back_at_the_same_time(self):
        head, followers = self.chained()
        in_threads([lambda: finish([head]), lambda: release(DATABASE, followers)])
        assert ReadyExecution.objects.count() == 1
        assert ClaimedExecution.objects.count() == 0

    @pytest.mark.usefixtures("row_locks")
    def test_nothing_follows_a_claim_that_is_not_held(self):
        process = a_process()
        enqueue(), enqueue()
        (head,) = take(process=process)
        finish([head])
        found = store_for(DATABASE).follow(
            [head], most=3, process_id=process, token=uuid4(), now=timezone.now()
        )
        assert found == {}

    def test_nothing_follows_a_process_that_was_struck_off(self):
        process = a_process()
        enqueue(), enqueue()
        (head,) = take(process=process)
        Process.objects.filter(pk=process).delete()
        found = store_for(DATABASE).follow(
            [head], most=3, process_id=process, token=uuid4(), now=timezone.now()
        )
        assert found == {}

    @pytest.mark.usefixtures("row_locks")
    def test_who_may_not_follow_is_seen_by_others(self):
        for _ in range(2):
            enqueue(two_by_account)
        head, other = take(2)
        waiting = two_by_account.using(queue_name="other").enqueue("a")

        def follow():
            return store_for(DATABASE).follow(
                [head],
                most=5,
                process_id=head.process_id,
                token=uuid4(),
                now=timezone.now(),
            )

        with uncommitted(follow) as found:
            assert found == {}
            finish([other])
        assert state_of(waiting) == "ready"

    def test_only_jobs_of_its_queue_follow(self):
        process = a_process()
        enqueue()
        one_by_account.using(queue_name="other").enqueue("a")
        (head,) = take(process=process)
        found = store_for(DATABASE).follow(
            [head], most=3, process_id=process, token=uuid4(), now=timezone.now()
        )
        assert found == {}


@pytest.mark.usefixtures("row_locks")
def test_a_slow_transaction_of_an_enqueuer_holds_nobody_up():
    enqueue()
    held = take()
    with uncommitted(enqueue):
        # It would wait for as long as the other one thinks.
        assert started(finish, held).result(5) == {held[0].job_id}


@pytest.mark.usefixtures("row_locks")
def test_transactions_with_keys_in_opposite_order_do_not_deadlock():
    def enqueue_both(first, second):
        with transaction.atomic():
            one_by_account.enqueue(first)
            one_by_account.enqueue(second)

    pairs = [("a", "b"), ("b", "a")] * 2
    in_threads(
        [lambda pair=pair: [enqueue_both(*pair) for _ in range(5)] for pair in pairs]
    )
    assert ReadyExecution.objects.count() == 2


@task(concurrency=Concurrency(key="both", limit=2), unique=Unique(until="started"))
def two_until_started(value):
    return value


@pytest.mark.usefixtures("row_locks")
def test_whoever_waits_for_a_unique_key_holds_no_slot():
    two_until_started.enqueue(1)
    (held,) = take()
    later = two_until_started.enqueue(2)
    with uncommitted(two_until_started.enqueue, 2):
        # The transaction has been told that it waits, and keeps its key.
        racing = started(cancel, DATABASE, later.id)
        time.sleep(0.5)
        assert started(finish, [held]).result(10)
    assert racing.result(30)
