"""The guarantees, asked of the tables themselves."""

from robust_queue.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    Job,
    ReadyExecution,
    ScheduledExecution,
)

UNFINISHED = {
    "scheduled": ScheduledExecution,
    "ready": ReadyExecution,
    "blocked": BlockedExecution,
    "claimed": ClaimedExecution,
    "failed": FailedExecution,
}
STATES = {**UNFINISHED, "finished": FinishedExecution}


def states(using="default"):
    """Where every job stands, by id; asserts that each stands in one place only."""
    found = {}
    for state, model in STATES.items():
        for job_id in model.objects.using(using).values_list("pk", flat=True):
            assert job_id not in found, f"{job_id} is {found[job_id]} and {state}"
            found[job_id] = state
    jobs = set(Job.objects.using(using).values_list("pk", flat=True))
    assert set(found) == jobs, "every row has its job and every job its row"
    return found


def state_of(result, using="default"):
    """Where the job of a result stands."""
    return Job.objects.using(using).with_state().get(pk=result.id).state
