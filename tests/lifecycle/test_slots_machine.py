"""Limited jobs, whatever happens to them and in whatever order.

After each step: nobody runs beside more others than its limit allows, by the account of
the machine and not of the tables; slots are counted right; nobody waits while there is
a slot for it.
"""

import os
from collections import Counter
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from robust_queue import enqueue_all
from robust_queue.exceptions import UndiscardableError
from robust_queue.flow.keys import split
from robust_queue.lifecycle import recount
from robust_queue.lifecycle.cancel import cancel
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.recover import claims_of, give_up
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.retry import retry
from robust_queue.lifecycle.settle import settle
from robust_queue.lifecycle.unblock import Unblocking
from robust_queue.models import (
    Attempt,
    BlockedExecution,
    ClaimedExecution,
    Job,
    Process,
    Semaphore,
)
from robust_queue.stores import store_for
from tests.support.invariants import STATES, states
from tests.support.processes import a_process
from tests.testapp.limited_tasks import (
    by_keys,
    fail_at_first,
    one_by_account,
    only_one,
    two_by_account,
    two_of_one_tenant_each,
)

# Hundreds find more: RQ_SLOTS_EXAMPLES=500.
EXAMPLES = int(os.environ.get("RQ_SLOTS_EXAMPLES") or 30)
DATABASE = "default"
LATER = timedelta(days=1)

CALLS = st.sampled_from(
    [
        (one_by_account, "a"),
        (one_by_account, "b"),
        (two_by_account, "a"),
        (by_keys, ["a", "b"]),
        (by_keys, ["b", "c"]),
        (by_keys, "c"),
        (two_of_one_tenant_each, "x"),
        (two_of_one_tenant_each, "y"),
        (fail_at_first, "flaky"),
        (only_one, "only"),
    ]
)
LIMITS = {two_by_account.module_path: 2, "everywhere": 2}


class Slots(RuleBasedStateMachine):
    """Jobs that need slots, and everything that may become of them."""

    def __init__(self):
        super().__init__()
        # Claims by process; of a chain the first one runs, the others follow it.
        self.held = {}
        self.leader = {}

    def teardown(self):
        for model in (*STATES.values(), Attempt, Job, Process, Semaphore):
            model.objects.all().delete()

    def _any_claim(self, data):
        return data.draw(st.sampled_from(sorted(self.held, key=str)))

    def _forget(self, job_ids):
        for job_id in job_ids:
            self.held.pop(job_id, None)
            self.leader.pop(job_id, None)

    # ── What enqueuers do ──────────────────────────────────────────────────────

    @rule(call=CALLS, priority=st.integers(-1, 1), later=st.booleans())
    def enqueue(self, call, priority, later):
        task, argument = call
        run_after = timezone.now() + LATER if later else None
        task.using(priority=priority, run_after=run_after).enqueue(argument)

    @rule(calls=st.lists(CALLS, max_size=5))
    def enqueue_many(self, calls):
        enqueue_all(task.bind(argument) for task, argument in calls)

    @rule(task=st.sampled_from([one_by_account, two_by_account]))
    def enqueue_a_line(self, task):
        enqueue_all(task.bind("a") for _ in range(5))

    @rule(calls=st.lists(CALLS, max_size=3), is_wanted=st.booleans())
    def enqueue_in_a_transaction(self, calls, is_wanted):
        with transaction.atomic():
            for task, argument in calls:
                task.enqueue(argument)
            transaction.set_rollback(not is_wanted)

    # ── What workers do ────────────────────────────────────────────────────────

    @rule(limit=st.integers(1, 3))
    def claim(self, limit):
        process = a_process()
        for each in claim(DATABASE, process_id=process, limit=limit):
            self.held[each.job_id] = each

    @precondition(lambda self: self.held)
    @rule(data=st.data(), most=st.integers(1, 3))
    def follow(self, data, most):
        waited_for = set(
            BlockedExecution.objects.values_list("concurrency_key", flat=True)
        )
        heads = [
            each for each in self.held.values() if each.concurrency_key in waited_for
        ]
        if not heads:
            return
        head = data.draw(st.sampled_from(sorted(heads, key=lambda each: each.job_id)))
        found = store_for(DATABASE).follow(
            [head],
            most=most,
            process_id=head.process_id,
            token=uuid4(),
            now=timezone.now(),
        )
        leader = self.leader.get(head.job_id, head.job_id)
        for each in found.get(head.job_id, []):
            self.held[each.job_id] = each
            self.leader[each.job_id] = leader
        if found:
            self.leader[head.job_id] = leader

    @precondition(lambda self: self.held)
    @rule(data=st.data(), count=st.integers(1, 3))
    def finish(self, data, count):
        chosen = {self._any_claim(data) for _ in range(count)}
        outcomes = [
            perform(self.held[each], database=DATABASE, worker_id="w").outcome
            for each in chosen
        ]
        assert settle(DATABASE, outcomes) == chosen
        self._forget(chosen)
        # Once more, as after a reply that was lost.
        settle(DATABASE, outcomes)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), count=st.integers(1, 3))
    def give_back(self, data, count):
        chosen = {self._any_claim(data) for _ in range(count)}
        assert release(DATABASE, [self.held[each] for each in chosen]) == chosen
        self._forget(chosen)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def die(self, data):
        process = self.held[self._any_claim(data)].process_id
        Process.objects.filter(pk=process).delete()
        dead = claims_of(DATABASE, process)
        give_up(DATABASE, dead, RuntimeError("It has died."), worker_id="w")
        self._forget([each.job_id for each in dead])

    # ── What others do ─────────────────────────────────────────────────────────

    @rule(limit=st.integers(1, 3))
    def dispatch(self, limit):
        dispatch_due(DATABASE, limit=limit, now=timezone.now() + 2 * LATER)

    @precondition(lambda self: states())
    @rule(data=st.data(), verb=st.sampled_from([discard, cancel, retry]))
    def operate(self, data, verb):
        job_id = data.draw(st.sampled_from(sorted(states(), key=str)))
        if verb is cancel and job_id in self.held:
            return
        try:
            verb(DATABASE, job_id)
        except UndiscardableError:
            assert job_id in self.held

    @rule()
    def maintain(self):
        Semaphore.objects.update(expires_at=timezone.now() - LATER)
        assert recount.repair(DATABASE) == 0
        recount.forget_idle(DATABASE)
        assert Unblocking(DATABASE).sweep() == 0

    # ── What is always true ────────────────────────────────────────────────────

    @invariant()
    def never_more_than_the_limit_run(self):
        running = {
            self.leader.get(job_id, job_id): c for job_id, c in self.held.items()
        }
        keys = Counter(
            key for each in running.values() for key in split(each.concurrency_key)
        )
        for key, count in keys.items():
            assert count <= LIMITS.get(key.partition("/")[0], 1), key

    @invariant()
    def slots_are_counted_right(self):
        assert recount.miscounted(DATABASE) == []
        assert not Semaphore.objects.filter(value__lt=0).exists()

    @invariant()
    def nobody_waits_in_vain(self):
        full = set(Semaphore.objects.filter(value=0).values_list("key", flat=True))
        for keys in BlockedExecution.objects.values_list(
            "job__concurrency_key", flat=True
        ):
            assert full.intersection(split(keys)), keys

    @invariant()
    def claims_are_those_that_are_held(self):
        claimed = set(ClaimedExecution.objects.values_list("pk", flat=True))
        assert claimed == set(self.held)

    @invariant()
    def every_job_is_somewhere(self):
        assert set(states()) == set(Job.objects.values_list("pk", flat=True))
        assert all(isinstance(each, UUID) for each in states())


@pytest.mark.django_db(transaction=True)
def test_slots_are_right_whatever_happens():
    run_state_machine_as_test(
        Slots,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
