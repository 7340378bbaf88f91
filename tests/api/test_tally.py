"""What workers outside have done, in the statistics, and in nobody's way."""

import threading

import pytest
from django.db import OperationalError

from robust_queue.api import tally
from robust_queue.lifecycle.statistics import history
from robust_queue.processes import ledger
from tests.support.threads import in_thread, started

from .conftest import Outsider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def book():
    return tally._books.of("default")


@pytest.fixture
def later(monkeypatch):
    """What is to be called later, in this order."""
    calls = []
    monkeypatch.setattr(tally, "later", lambda seconds, action: calls.append(action))
    return calls


def report(render, *ends):
    worker = Outsider()
    for end in ends:
        render.enqueue("long" * 1_000)
        worker.report(worker.take(), end)


def counted():
    total = history("default", "hour", queue_name="pdf").total
    return total.finished, total.failed


def test_is_written_once_for_many(render, later):
    report(render, "succeeded", "failed", "succeeded")
    (write,) = later
    assert counted() == (0, 0)
    in_thread(write)
    assert counted() == (2, 1)
    report(render, "succeeded")
    assert later == [write] * 2
    in_thread(write)
    assert counted() == (3, 1)


def test_keeps_nothing_large(render, later, book):
    report(render, "succeeded")
    (ended,) = book._ended
    assert len(repr(ended.held)) < 2_000


def test_what_cannot_be_written_is_tried_again(render, later, monkeypatch):
    report(render, "succeeded")
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "write_tallies", refuse)
        in_thread(later.pop())
    in_thread(later.pop())
    assert counted() == (1, 0)
    assert not later


def refuse(*args):
    raise OperationalError("gone")


def test_nobody_waits_until_it_is_written(render, later, monkeypatch):
    """The table may be locked, or the server have gone without a word."""
    report(render, "succeeded")
    begun, go_on, write = threading.Event(), threading.Event(), ledger.write_tallies

    def write_slowly(*args):
        begun.set()
        assert go_on.wait(30)
        write(*args)

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "write_tallies", write_slowly)
        writing = started(later.pop())
        assert begun.wait(30)
        report(render, "failed")
        assert counted() == (0, 0)
        go_on.set()
        writing.result(30)
    in_thread(later.pop())
    assert counted() == (1, 1)


def test_a_thread_that_cannot_be_had_is_asked_for_again(render, monkeypatch, book):
    def refuse(seconds, action):
        raise RuntimeError("can't start new thread")

    worker = Outsider()
    render.enqueue()
    with monkeypatch.context() as patch:
        patch.setattr(tally, "later", refuse)
        worker.caller.client.raise_request_exception = False
        assert worker.report(worker.take(), "succeeded")["recorded"]
    calls = []
    monkeypatch.setattr(tally, "later", lambda seconds, action: calls.append(action))
    report(render, "succeeded")
    in_thread(calls.pop())
    assert counted() == (2, 0)
