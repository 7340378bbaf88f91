"""Whoever listens to tasks cannot harm them."""

import pytest
from django.db import connection, transaction

from robust_queue.compat import signals
from robust_queue.models import FinishedExecution
from robust_queue.testing import drain
from tests.testapp.models import Mark
from tests.testapp.process_tasks import mark

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("name", ["task_enqueued", "task_started", "task_finished"])
def test_a_transaction_that_a_receiver_leaves_open_swallows_nothing(name, caplog):
    def leave_open(**kwargs):
        transaction.atomic().__enter__()
        Mark.objects.create(label="of the receiver", pid=0)

    signal = getattr(signals, name)
    signal.connect(leave_open)
    try:
        for label in ("first", "second"):
            mark.enqueue(label)
            drain()
    finally:
        signal.disconnect(leave_open)
    assert not connection.in_atomic_block
    connection.close()  # what was not committed is gone with it
    assert list(Mark.objects.values_list("label", flat=True)) == ["first", "second"]
    assert FinishedExecution.objects.count() == 2
    assert f"A receiver of {name} left a transaction open" in caplog.text
