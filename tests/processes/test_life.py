"""The life around an actor, without a process of its own."""

from uuid import uuid4

import pytest

from robust_queue.configuration import ConfigurationOptions
from robust_queue.models import Process
from robust_queue.processes.exits import ExitCode
from robust_queue.processes.life import Birth
from robust_queue.processes.page import Page
from robust_queue.processes.posts import posts
from robust_queue.processes.threaded import ThreadLife
from robust_queue.signals import process_exited, process_started, process_stopping
from tests.support.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def told():
    """What has been told of processes."""
    heard, receivers = [], []
    for name, signal in [
        ("started", process_started),
        ("stopping", process_stopping),
        ("exited", process_exited),
    ]:
        receivers.append((signal, lambda name=name, **facts: heard.append(name)))
        signal.connect(receivers[-1][1])
    yield heard
    for signal, receiver in receivers:
        signal.disconnect(receiver)


def a_life():
    """Of a dispatcher, which has no threads but its heart."""
    (post,) = posts("default", ConfigurationOptions(workers=[]), [])
    return ThreadLife(
        Birth(
            post=post,
            identity=uuid4(),
            supervisor_id=uuid4(),
            page=Page(0),
            wake_supervisor=lambda: None,
        )
    )


def test_who_never_started_does_not_tell_that_it_stops(told):
    life = a_life()
    life.ask_to_stop()
    assert in_thread(life.live) == ExitCode.DONE
    assert told == []
    assert not Process.objects.exists()


def test_who_is_stopped_while_it_starts_tells_of_both(told):
    life = a_life()

    def stop_it(**facts):
        life.ask_to_stop()

    process_started.connect(stop_it)
    try:
        assert in_thread(life.live) == ExitCode.DONE
    finally:
        process_started.disconnect(stop_it)
    assert told == ["started", "stopping", "exited"]
    assert not Process.objects.exists()
