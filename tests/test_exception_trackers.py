"""Exception trackers hear of failures without being told how: Sentry's own SDK."""

import pytest
import sentry_sdk
from sentry_sdk.transport import Transport

from robust_queue.logs import take_over
from robust_queue.testing import drain
from tests.support.in_process import in_process
from tests.support.invariants import state_of
from tests.support.receivers import frameworks_kept
from tests.testapp import failing_tasks
from tests.testapp.tasks import explode, note

pytestmark = pytest.mark.django_db(transaction=True)


class Collected(Transport):
    """Keeps what would be sent."""

    def __init__(self, options=None):
        super().__init__(options)
        self.events = []

    def capture_envelope(self, envelope):
        event = envelope.get_event()
        if event is not None:
            self.events.append(event)


@pytest.fixture
def sentry():
    transport = Collected()
    sentry_sdk.init(dsn="http://key@127.0.0.1:9/1", transport=transport)
    with frameworks_kept():
        take_over()  # as in every process that runs the queue
        yield transport
    sentry_sdk.get_client().close(timeout=0)
    # What it has patched stays, and does nothing without a client.
    sentry_sdk.get_global_scope().set_client(None)


def errors(sentry):
    return [event["exception"]["values"][-1] for event in sentry.events]


def test_a_failure_is_heard_with_its_traceback(sentry):
    result = explode.enqueue()
    with in_process(threads=1, coroutines=1) as worker:
        worker.until(lambda: state_of(result) == "failed")
        worker.drain()
    (error,) = errors(sentry)
    assert error["type"] == "ValueError"
    functions = [frame["function"] for frame in error["stacktrace"]["frames"]]
    assert "explode" in functions


def test_what_was_meant_to_end_is_not(sentry):
    failing_tasks.give_it_up.enqueue()
    failing_tasks.choose.enqueue("key")
    note.enqueue()
    drain()
    assert errors(sentry) == []
