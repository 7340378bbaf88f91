"""At most so many at a time: what is ready, what is blocked, and who is next."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import OperationalError, transaction
from django.utils import timezone

from robust_queue import Concurrency, enqueue_all, limits_concurrency, registry, task
from robust_queue.compat import InvalidTask, TaskResultStatus
from robust_queue.flow.concurrency import limit_of
from robust_queue.lifecycle.cancel import cancel
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.rerun import rerun
from robust_queue.lifecycle.retry import retry
from robust_queue.lifecycle.settle import settle
from robust_queue.lifecycle.unblock import Unblocking
from robust_queue.models import (
    BlockedExecution,
    FailedExecution,
    Job,
    ReadyExecution,
    Semaphore,
)
from robust_queue.stores import store_for
from robust_queue.testing import drain
from tests.support.invariants import states
from tests.support.processes import a_process
from tests.testapp.limited_tasks import (
    by_division,
    by_keys,
    close_account,
    fail_at_first,
    one_by_account,
    only_one,
    two_by_account,
    two_of_one_tenant_each,
    write_to_account,
)
from tests.testapp.models import Mark

pytestmark = pytest.mark.django_db(transaction=True)

DATABASE = "default"


def standing(*results):
    found = states()
    return [found.get(UUID(each.id)) for each in results]


def take(limit=10, **options):
    return claim(DATABASE, process_id=a_process(), limit=limit, **options)


def finish(claims):
    done = [perform(each, database=DATABASE, worker_id="w").outcome for each in claims]
    return settle(DATABASE, done)


def free(key):
    return Semaphore.objects.get(key=key).value


class TestBlocking:
    def test_one_is_ready_and_the_others_are_blocked(self):
        results = [one_by_account.enqueue("a") for _ in range(3)]
        assert standing(*results) == ["ready", "blocked", "blocked"]

    def test_other_keys_are_others(self):
        results = [one_by_account.enqueue(each) for each in "abc"]
        assert standing(*results) == ["ready"] * 3

    def test_up_to_the_limit(self):
        results = [two_by_account.enqueue("a") for _ in range(3)]
        assert standing(*results) == ["ready", "ready", "blocked"]

    def test_the_end_of_one_is_the_turn_of_the_next(self):
        results = [one_by_account.enqueue("a") for _ in range(3)]
        finish(take())
        assert standing(*results) == ["finished", "ready", "blocked"]
        finish(take())
        finish(take())
        assert standing(*results) == ["finished"] * 3
        assert free(f"{one_by_account.module_path}/a") == 1

    def test_in_bulk(self):
        results = enqueue_all(one_by_account.bind(each) for each in "abab")
        assert standing(*results) == ["ready", "ready", "blocked", "blocked"]

    def test_many_of_one_key_in_bulk(self):
        enqueue_all(two_by_account.bind("a") for _ in range(100))
        assert ReadyExecution.objects.count() == 2
        assert BlockedExecution.objects.count() == 98

    def test_by_priority_and_then_in_order(self):
        one_by_account.enqueue("a", "first")
        late = one_by_account.enqueue("a", "late")
        later = one_by_account.enqueue("a", "later")
        urgent = one_by_account.using(priority=-5).enqueue("a", "urgent")
        order = [each.id for each in drain()][1:]
        assert order == [urgent.id, late.id, later.id]

    def test_who_is_blocked_keeps_queue_and_priority(self):
        one_by_account.enqueue("a")
        other = one_by_account.using(queue_name="slow", priority=7).enqueue("a")
        finish(take())
        row = ReadyExecution.objects.get()
        assert (str(row.job_id), row.queue_name, row.priority) == (other.id, "slow", 7)

    def test_everything_is_run_in_the_end(self):
        enqueue_all(one_by_account.bind(each) for each in "aabbaacbb")
        assert len(drain()) == 9
        assert set(states().values()) == {"finished"}


class TestWhenDue:
    def test_a_scheduled_job_has_no_slot(self):
        later = one_by_account.using(run_after=timedelta(hours=1)).enqueue("a")
        now = one_by_account.enqueue("a")
        assert standing(later, now) == ["scheduled", "ready"]

    def test_it_needs_one_when_it_is_due(self):
        soon = timezone.now() + timedelta(seconds=1)
        results = [one_by_account.using(run_after=soon).enqueue(each) for each in "aab"]
        dispatch_due(DATABASE, now=soon)
        assert standing(*results) == ["ready", "blocked", "ready"]

    def test_a_retry_passes_through_the_limit_again(self):
        first, second = fail_at_first.enqueue("1"), fail_at_first.enqueue("2")
        finish(take())
        assert standing(first, second) == ["scheduled", "ready"]
        dispatch_due(DATABASE, now=timezone.now() + timedelta(minutes=1))
        assert standing(first, second) == ["blocked", "ready"]
        finish(take())
        assert standing(first, second) == ["ready", "scheduled"]


class TestKeys:
    def test_tasks_are_apart(self):
        results = [one_by_account.enqueue("a"), two_by_account.enqueue("a")]
        assert standing(*results) == ["ready", "ready"]

    def test_unless_they_share_a_group(self):
        results = [close_account.enqueue("a"), write_to_account.enqueue("a", "Bye.")]
        assert standing(*results) == ["ready", "blocked"]

    def test_a_model_is_known_by_its_primary_key(self):
        mark = Mark.objects.create(label="x", pid=1)
        by_keys.enqueue(mark)
        assert (
            Semaphore.objects.get().key
            == f"{by_keys.module_path}/testapp.Mark:{mark.pk}"
        )

    def test_none_is_no_limit(self):
        results = [by_keys.enqueue(None) for _ in range(3)]
        assert standing(*results) == ["ready"] * 3

    def test_several_at_once_are_taken_all_or_none(self):
        first = by_keys.enqueue(["a", "b"])
        second = by_keys.enqueue(["b", "c"])
        third = by_keys.enqueue(["c"])
        assert standing(first, second, third) == ["ready", "blocked", "ready"]
        finish(take(limit=1))
        # It waits for "c" by now, which the third has.
        assert standing(second) == ["blocked"]
        finish(take())
        assert standing(second) == ["ready"]
        finish(take())
        assert set(Semaphore.objects.values_list("value", flat=True)) == {1}

    def test_several_limits_of_one_task(self):
        results = [two_of_one_tenant_each.enqueue(each) for each in "aabc"]
        assert standing(*results) == ["ready", "blocked", "ready", "blocked"]
        finish(take(limit=1))
        # Of the tenant there is room, and of all others, for one.
        assert sorted(standing(*results)[1:]) == ["blocked", "ready", "ready"]
        assert len(drain()) == 3

    def test_groups_that_begin_alike(self):
        limits = [
            Concurrency(key="x", group="a", limit=1),
            Concurrency(key="x", group="a/b", limit=5),
        ]
        both = replace(two_of_one_tenant_each, concurrency=limits)
        assert [limit_of(both, key) for key in ("a/x", "a/b/x")] == [1, 5]

    def test_a_long_key_is_one_of_its_own(self):
        long = "x" * 500
        results = [one_by_account.enqueue(long + each) for each in "aab"]
        assert standing(*results) == ["ready", "blocked", "ready"]

    def test_whatever_its_characters_are(self):
        odd = "\x00\n\ud800é🎉"
        results = [by_keys.enqueue([odd, "é"]) for _ in range(2)]
        assert standing(*results) == ["ready", "blocked"]
        assert len(drain()) == 2

    def test_spaces_at_its_end_count(self):
        # MariaDB does not tell such texts apart.
        results = [one_by_account.enqueue(each) for each in ("a", "a ", "a ", "a  ")]
        assert standing(*results) == ["ready", "ready", "blocked", "ready"]
        assert len(drain()) == 4

    def test_a_key_that_cannot_be_found_is_refused(self):
        with pytest.raises(InvalidTask, match="ZeroDivisionError"):
            by_division.enqueue(0)
        assert states() == {}

    def test_too_many_are_refused(self):
        with pytest.raises(InvalidTask, match="too many"):
            by_keys.enqueue([str(i) * 50 for i in range(30)])


def test_a_job_that_is_stored_is_no_error(monkeypatch):
    """Its slot could not be asked for; whoever calls would enqueue it twice."""

    def gone_away(*args, **options):
        raise OperationalError("The server has gone away.")

    with monkeypatch.context() as patched:
        patched.setattr(type(store_for(DATABASE)), "promote", gone_away)
        result = one_by_account.enqueue("a")
    assert standing(result) == ["blocked"]
    Unblocking(DATABASE).sweep()
    assert standing(result) == ["ready"]


def test_a_job_that_is_gone_keeps_nobody_from_its_keys():
    by_keys.enqueue(["a"])
    gone = by_keys.enqueue(["a", "b"])
    Job.objects.filter(pk=gone.id)._raw_delete(DATABASE)
    finish(take())
    assert str(ReadyExecution.objects.get().job_id) == gone.id
    assert not BlockedExecution.objects.exists()


class TestInATransaction:
    def test_it_is_decided_at_the_commit(self):
        with transaction.atomic():
            result = one_by_account.enqueue("a")
            assert standing(result) == ["blocked"]
            assert not Semaphore.objects.exists()
        assert standing(result) == ["ready"]

    def test_a_rollback_leaves_no_trace(self):
        with transaction.atomic():
            one_by_account.enqueue("a")
            transaction.set_rollback(True)
        assert states() == {}
        assert not Semaphore.objects.exists()


@pytest.mark.django_db(transaction=False)
def test_in_a_test_case_it_is_decided_at_once():
    results = [one_by_account.enqueue("a") for _ in range(2)]
    assert standing(*results) == ["ready", "blocked"]
    assert len(drain()) == 2


class TestDiscard:
    def test_the_result_says_so_at_once(self):
        first, second = only_one.enqueue("1"), only_one.enqueue("2")
        assert second.status == TaskResultStatus.FAILED
        (error,) = second.errors
        assert error.exception_class_path == "robust_queue.exceptions.TaskDiscarded"
        assert first.id in error.traceback
        assert "only" in error.traceback
        assert standing(first, second) == ["ready", "failed"]
        assert FailedExecution.objects.get().kind == "discarded"

    def test_in_bulk(self):
        results = enqueue_all(only_one.bind(str(i)) for i in range(3))
        statuses = [each.status for each in results]
        assert statuses == [
            TaskResultStatus.READY,
            TaskResultStatus.FAILED,
            TaskResultStatus.FAILED,
        ]

    def test_in_a_transaction_at_the_commit(self):
        with transaction.atomic():
            results = [only_one.enqueue("1"), only_one.enqueue("2")]
            assert standing(*results) == ["blocked", "blocked"]
        assert standing(*results) == ["ready", "failed"]

    def test_when_it_is_free_again(self):
        only_one.enqueue("1")
        finish(take())
        assert only_one.enqueue("2").status == TaskResultStatus.READY

    def test_when_it_is_due(self):
        soon = timezone.now() + timedelta(seconds=1)
        later = only_one.using(run_after=soon).enqueue("1")
        now = only_one.enqueue("2")
        dispatch_due(DATABASE, now=soon)
        assert standing(later, now) == ["failed", "ready"]


class TestOperators:
    def test_a_ready_job_that_is_discarded_gives_its_slot_back(self):
        first, second = one_by_account.enqueue("a"), one_by_account.enqueue("a")
        discard(DATABASE, first.id)
        assert standing(second) == ["ready"]

    def test_a_blocked_one_has_none(self):
        one_by_account.enqueue("a")
        discard(DATABASE, one_by_account.enqueue("a").id)
        finish(take())
        assert free(f"{one_by_account.module_path}/a") == 1

    def test_a_ready_job_that_is_cancelled_gives_its_slot_back(self):
        first, second = one_by_account.enqueue("a"), one_by_account.enqueue("a")
        cancel(DATABASE, first.id)
        assert standing(first, second) == ["failed", "ready"]

    def test_a_retried_job_needs_a_slot(self):
        first = fail_at_first.using(run_after=None).enqueue("1")
        finish(take())
        cancel(DATABASE, first.id)
        second = fail_at_first.enqueue("2")
        assert retry(DATABASE, first.id)
        assert standing(first, second) == ["blocked", "ready"]

    def test_a_rerun_hands_the_slot_on(self):
        first = one_by_account.enqueue("a", "old")
        new = rerun(DATABASE, first.id, args=["a", "new"])
        assert standing(new) == ["ready"]
        assert len(drain()) == 1
        assert free(f"{one_by_account.module_path}/a") == 1


class TestClaims:
    def test_a_released_claim_keeps_its_slot(self):
        first, second = one_by_account.enqueue("a"), one_by_account.enqueue("a")
        release(DATABASE, take())
        assert standing(first, second) == ["ready", "blocked"]
        assert free(f"{one_by_account.module_path}/a") == 0

    def test_an_outcome_that_comes_twice_frees_one_slot(self):
        for _ in range(3):
            one_by_account.enqueue("a")
        claims = take()
        done = [
            perform(each, database=DATABASE, worker_id="w").outcome for each in claims
        ]
        settle(DATABASE, done)
        settle(DATABASE, done)
        assert sorted(states().values()) == ["blocked", "finished", "ready"]


class TestDeclaration:
    def test_a_decorator_above_the_task_counts_for_the_declared_one(self):
        declared = registry.find(close_account.module_path)
        assert declared.concurrency[0].group == "accounts"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"limit": 0},
            {"limit": True},
            {"limit": "2"},
            {"key": 7},
            {"duration": 0},
            {"duration": "soon"},
            {"group": ""},
            {"on_conflict": "wait"},
        ],
    )
    def test_nonsense_is_refused(self, wrong):
        with pytest.raises(InvalidTask, match=next(iter(wrong))):
            Concurrency(**wrong)

    def test_several_limits_need_groups(self):
        with pytest.raises(InvalidTask, match="group"):
            task(concurrency=[Concurrency(key="a"), Concurrency(key="b")])(len)

    def test_limits_add_up(self):
        more = limits_concurrency(key="b", group="b")(close_account)
        try:
            assert [each.group for each in more.concurrency] == ["accounts", "b"]
        finally:
            registry.redeclare(close_account)


class TestChanges:
    def test_a_raised_limit_counts_for_those_that_wait(self, monkeypatch):
        results = [two_by_account.enqueue("a") for _ in range(5)]
        raised = [Concurrency(key=lambda account: account, limit=4)]
        more = replace(two_by_account, concurrency=raised)
        monkeypatch.setitem(registry._declared, two_by_account.module_path, more)
        two_by_account.enqueue("a")
        assert standing(*results) == ["ready"] * 4 + ["blocked"]

    def test_a_task_that_is_gone_is_let_through(self, monkeypatch):
        results = [one_by_account.enqueue("a") for _ in range(2)]
        monkeypatch.delitem(registry._declared, one_by_account.module_path)
        monkeypatch.setattr(registry, "_declared_elsewhere", lambda path: None)
        finish(take())
        assert standing(*results) == ["failed", "ready"]
