"""A row at its last attempt never jams the queue."""

from datetime import timedelta

import pytest
from django.utils import timezone

from robust_queue.lifecycle import settle
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.models import Attempt, FailedExecution, ReadyExecution
from robust_queue.testing import drain
from tests.support.invariants import states
from tests.testapp.failing_tasks import declare_nothing
from tests.testapp.tasks import add, explode

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("attempts", [1, 3, 31_999, 32_766, 32_767])
def test_what_was_tried_too_often_ends_and_others_run(attempts):
    worn = explode.enqueue()
    ReadyExecution.objects.update(attempts=attempts)
    fresh = add.enqueue(1)
    drain()
    found = {str(job_id): state for job_id, state in states().items()}
    assert found == {worn.id: "failed", fresh.id: "finished"}
    assert FailedExecution.objects.get().attempts == min(attempts + 1, 32_767)


def test_of_many_attempts_the_first_and_the_latest_keep_their_tracebacks(
    settings, monkeypatch
):
    monkeypatch.setattr(settle, "MOST_TRACEBACKS", 3)
    policy = {"max_attempts": 9, "backoff": [1]}
    settings.ROBUST_QUEUE = {"task_defaults": policy}
    result = declare_nothing.enqueue()
    for _ in range(9):
        dispatch_due("default", now=timezone.now() + timedelta(days=1))
        drain()
    kept = Attempt.objects.exclude(traceback="").order_by("attempts")
    assert list(kept.values_list("attempts", flat=True)) == [1, 7, 8]
    result.refresh()
    assert (result.attempts, len(result.errors)) == (9, 9)
