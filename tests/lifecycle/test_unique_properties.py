"""Whatever is done to unique jobs: who is pending holds its key, and nobody else."""

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from robust_queue import DuplicateTaskError
from robust_queue.lifecycle.cancel import cancel
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import discard_all
from robust_queue.lifecycle.failure import failed_to_record
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.retry import retry
from robust_queue.lifecycle.settle import settle
from robust_queue.lifecycle.unique_sweep import sweep
from robust_queue.models import Attempt, Cancellation, Job, Process, UniqueLock
from tests.support.invariants import STATES, states
from tests.support.outcomes import success
from tests.support.processes import a_process
from tests.testapp.unique_tasks import discarded, latest, refused, returned

CUSTOMERS = st.integers(1, 2)
PENDING = {"scheduled", "ready", "blocked", "claimed"}


class UniqueJobs(RuleBasedStateMachine):
    """Calls of two customers, in every way in which they may be in conflict."""

    def __init__(self):
        super().__init__()
        self.process = a_process()
        self.claims = []

    def teardown(self):
        for model in (
            *STATES.values(),
            Attempt,
            Cancellation,
            Job,
            UniqueLock,
            Process,
        ):
            model.objects.all().delete()

    def pending(self, task, customer):
        """The pending job of that call, if there is one, and where it stands."""
        standing = states()
        for job in Job.objects.filter(task_path=task.module_path):
            is_of_call = f"[{customer}]" in job.arguments
            if is_of_call and standing[job.id] in PENDING:
                return str(job.id), standing[job.id]
        return None, ""

    @rule(customer=CUSTOMERS)
    def enqueue_or_return(self, customer):
        holder, _ = self.pending(returned, customer)
        assert returned.enqueue(customer).id == holder or holder is None

    @rule(customer=CUSTOMERS)
    def enqueue_or_discard(self, customer):
        holder, _ = self.pending(discarded, customer)
        result = discarded.enqueue(customer)
        assert result.id != holder
        assert result.status == ("FAILED" if holder else "READY")

    @rule(customer=CUSTOMERS)
    def enqueue_or_raise(self, customer):
        holder, _ = self.pending(refused, customer)
        if holder is None:
            refused.enqueue(customer)
            return
        with pytest.raises(DuplicateTaskError, match=holder):
            refused.enqueue(customer)

    @rule(customer=CUSTOMERS)
    def enqueue_or_replace(self, customer):
        holder, state = self.pending(latest, customer)
        result = latest.enqueue(customer)
        assert (result.id == holder) is (state == "claimed")
        assert Job.objects.filter(pk=holder).exists() is (state == "claimed")

    @rule()
    def take(self):
        self.claims += claim("default", process_id=self.process, queues=("*",), limit=2)

    @rule()
    def finish(self):
        self._settle([success(each) for each in self.claims])

    @rule(is_final=st.booleans())
    def fail(self, is_final):
        outcomes = [
            failed_to_record(success(each), ValueError()) for each in self.claims
        ]
        for each in outcomes:
            each.retry_at = None if is_final else timezone.now()
        self._settle(outcomes)

    def _settle(self, outcomes):
        settle("default", outcomes)
        self.claims = []

    @rule()
    def give_back(self):
        release("default", self.claims)
        self.claims = []

    @rule(data=st.data(), verb=st.sampled_from([cancel, retry]))
    def change(self, data, verb):
        if ids := sorted(states()):
            verb("default", data.draw(st.sampled_from(ids)))

    @rule()
    def discard(self):
        discard_all("default", states())

    @rule()
    def sweep(self):
        assert sweep("default") == 0, "nothing is ever left over"

    @invariant()
    def who_is_pending_holds_its_key(self):
        pending = {id_ for id_, state in states().items() if state in PENDING}
        locks = dict(UniqueLock.objects.values_list("job_id", "key"))
        keys = dict(Job.objects.filter(pk__in=pending).values_list("pk", "unique_key"))
        assert locks == keys


@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_who_is_pending_holds_its_key(caplog):
    caplog.set_level("CRITICAL")
    run_state_machine_as_test(
        UniqueJobs,
        settings=settings(
            max_examples=30,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
