"""Whatever the verbs and whatever their order: the invariants hold after each."""

from datetime import timedelta
from uuid import UUID

import pytest
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
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.retry import retry
from robust_queue.lifecycle.settle import settle
from robust_queue.models import Attempt, ClaimedExecution, Job, Process
from tests.support.invariants import STATES, states
from tests.support.processes import a_process
from tests.testapp.tasks import add, explode, succeed_at_last

LATER = timedelta(days=1)
DATABASE = "default"


class Lifecycle(RuleBasedStateMachine):
    """A model of the queue, and the queue, doing the same things."""

    def __init__(self):
        super().__init__()
        self.expected = {}
        self.ranks = {}
        self.begun = {}
        self.held = []
        self.lost = []

    def teardown(self):
        for model in (*STATES.values(), Attempt, Job, Process):
            model.objects.all().delete()

    def _remember(self, result, state):
        self.expected[UUID(result.id)] = state
        self.ranks[UUID(result.id)] = result.task.priority
        self.begun[UUID(result.id)] = 0

    @rule(
        priority=st.integers(-2, 2),
        call=st.sampled_from(
            [(add, 1, 2), (explode,), (succeed_at_last, 2), (succeed_at_last, 99)]
        ),
        later=st.booleans(),
    )
    def enqueue(self, priority, call, later):
        run_after = timezone.now() + LATER if later else None
        task, *arguments = call
        result = task.using(priority=priority, run_after=run_after).enqueue(*arguments)
        self._remember(result, "scheduled" if later else "ready")

    @rule(count=st.integers(0, 5))
    def enqueue_many(self, count):
        for result in enqueue_all(add.bind(1, i) for i in range(count)):
            self._remember(result, "ready")

    @rule(limit=st.integers(1, 3))
    def dispatch(self, limit):
        waiting = [i for i, state in self.expected.items() if state == "scheduled"]
        moved = dispatch_due(DATABASE, limit=limit, now=timezone.now() + 2 * LATER)
        assert moved == min(limit, len(waiting))
        standing = states()
        changed = [i for i in waiting if standing[i] == "ready"]
        assert len(changed) == moved
        self.expected.update(dict.fromkeys(changed, "ready"))

    @rule(limit=st.integers(1, 4))
    def claim(self, limit):
        ready = [i for i, state in self.expected.items() if state == "ready"]
        in_order = sorted(ready, key=lambda i: (self.ranks[i], i))
        claims = claim(DATABASE, process_id=a_process(DATABASE), limit=limit)
        assert [each.job_id for each in claims] == in_order[:limit]
        self.held += claims
        for each in claims:
            self.expected[each.job_id] = "claimed"
            self.begun[each.job_id] += 1

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def perform_and_settle(self, data):
        chosen = data.draw(
            st.lists(st.sampled_from(self.held), min_size=1, unique=True)
        )
        outcomes = [
            perform(c, database=DATABASE, worker_id="w").outcome for c in chosen
        ]
        assert settle(DATABASE, outcomes) == {c.job_id for c in chosen}
        for each, outcome in zip(chosen, outcomes, strict=True):
            self._let_go(each)
            self.expected[each.job_id] = self._state_after(outcome, each)

    def _state_after(self, outcome, claimed):
        if not hasattr(outcome, "traceback"):
            return "finished"
        tries_again = "succeed_at_last" in claimed.task_path and claimed.attempts < 3
        return "scheduled" if tries_again else "failed"

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data):
        chosen = data.draw(st.sampled_from(self.held))
        assert release(DATABASE, [chosen]) == {chosen.job_id}
        self._let_go(chosen)
        self.expected[chosen.job_id] = "ready"
        self.begun[chosen.job_id] -= 1

    def _let_go(self, claimed):
        self.held.remove(claimed)
        self.lost.append(claimed)

    @precondition(lambda self: self.lost)
    @rule(data=st.data(), releasing=st.booleans())
    def act_on_a_lost_claim(self, data, releasing):
        stale = data.draw(st.sampled_from(self.lost))
        if releasing:
            assert release(DATABASE, [stale]) == set()
        else:
            outcome = perform(stale, database=DATABASE, worker_id="late").outcome
            assert settle(DATABASE, [outcome]) == set()

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def retry(self, data):
        job_id = data.draw(st.sampled_from(sorted(self.expected)))
        has_failed = self.expected[job_id] == "failed"
        assert retry(DATABASE, job_id) is has_failed
        if has_failed:
            self.expected[job_id] = "ready"

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def discard(self, data):
        job_id = data.draw(st.sampled_from(sorted(self.expected)))
        match self.expected[job_id]:
            case "claimed":
                with pytest.raises(UndiscardableError):
                    discard(DATABASE, job_id)
            case "finished":
                assert discard(DATABASE, job_id) is False
            case _:
                assert discard(DATABASE, job_id) is True
                del self.expected[job_id], self.begun[job_id]

    @invariant()
    def an_unfinished_job_has_exactly_one_row_and_a_finished_one_none(self):
        assert states() == self.expected

    @invariant()
    def every_claim_carries_its_own_token(self):
        tokens = dict(ClaimedExecution.objects.values_list("job_id", "token"))
        assert tokens == {c.job_id: c.token for c in self.held}

    @invariant()
    def every_attempt_is_counted_and_a_release_is_none(self):
        found = {}
        for model in STATES.values():
            found |= model.objects.values_list("pk", "attempts")
        assert found == self.begun

    @invariant()
    def every_attempt_that_another_followed_is_kept(self):
        kept = {job_id: [] for job_id in self.begun}
        for job_id, attempt in Attempt.objects.values_list("job_id", "attempts"):
            kept[job_id].append(attempt)
        for job_id, attempts in kept.items():
            waits = self.expected[job_id] in {"scheduled", "ready"}
            last = self.begun[job_id] - (not waits)
            assert sorted(attempts) == list(range(1, last + 1))


@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_invariants_hold_whatever_happens(caplog):
    caplog.set_level("CRITICAL")
    run_state_machine_as_test(
        Lifecycle,
        settings=settings(
            max_examples=40,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
