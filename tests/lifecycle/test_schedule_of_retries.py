"""When retries are due, as the database has it: seed 000's schedule, without jitter."""

from datetime import timedelta

import pytest
from django.test import override_settings
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robust_queue import exponential
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.models import Attempt, FailedExecution, Job, ScheduledExecution
from robust_queue.testing import drain
from tests.testapp.failing_tasks import declare_nothing

pytestmark = pytest.mark.django_db

# What a database keeps of a moment.
EXACT = timedelta(microseconds=2)


def attempted(result, attempt):
    return Attempt.objects.get(job_id=result.id, attempts=attempt)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    # Not so short that it comes due while the queue is drained.
    base=st.integers(2_000, 100_000).map(lambda n: n / 1000),
    times=st.integers(1, 40),
    attempts=st.integers(1, 7),
)
def test_retry_n_is_due_so_long_after_the_attempt_before_it(base, times, attempts):
    cap = timedelta(seconds=base) * times
    policy = {
        "max_attempts": attempts,
        "backoff": exponential(base, cap=cap, jitter=0),
    }
    with override_settings(ROBUST_QUEUE={"queue_defaults": {"default": policy}}):
        result = declare_nothing.enqueue()
        for n in range(attempts - 1):
            drain()
            row = ScheduledExecution.objects.get(pk=result.id)
            due = min(timedelta(seconds=base) * 2**n, cap)
            failed_at = attempted(result, n + 1).finished_at
            assert abs(row.scheduled_at - failed_at - due) <= EXACT
            dispatch_due("default", now=timezone.now() + timedelta(days=2))
        drain()
    assert FailedExecution.objects.get(pk=result.id).attempts == attempts
    Job.objects.all().delete()
