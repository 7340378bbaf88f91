"""The heart: what it tells the process that it beats in."""

import time
from uuid import uuid4

import pytest

from robust_queue.models import Process
from robust_queue.processes import clock
from robust_queue.processes.heart import Heart
from robust_queue.processes.page import Page
from tests.support.supervisors import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def beating(settings):
    """Starts the heart of a process, and tells how often it found itself gone."""
    settings.ROBUST_QUEUE = {
        "process_heartbeat_interval": 0.1,
        "process_alive_threshold": 60,
    }
    hearts = []

    def start(identity, *, last_beat):
        page, pruned = Page(0), []
        page.show_beat(last_beat)
        heart = Heart(
            "default",
            identity,
            page,
            on_pruned=lambda: pruned.append(time.monotonic()),
            on_distrust=lambda: None,
        )
        hearts.append(heart)
        heart.start()
        return heart, page, pruned

    yield start
    for each in hearts:
        each.stop()


def test_who_was_struck_off_is_told_once_and_beats_no_more(beating):
    heart, _, pruned = beating(uuid4(), last_beat=clock.now())
    until(lambda: not heart.is_alive(), "it has stopped")
    assert len(pruned) == 1


def test_who_was_silent_for_long_beats_at_once(beating):
    process = Process.objects.register("Worker", identity=uuid4())
    long_ago = clock.now() - 50
    _, page, pruned = beating(process.pk, last_beat=long_ago)
    until(lambda: page.last_beat > long_ago, "it has beaten")
    assert not pruned
