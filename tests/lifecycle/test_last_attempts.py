"""A row at its last attempt never jams the queue."""

import pytest

from robust_queue.models import FailedExecution, ReadyExecution
from robust_queue.testing import drain
from tests.support.invariants import states
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
