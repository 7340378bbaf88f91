"""Interrupting a thread: it strikes the task, and nothing that comes after it."""

import sys
import threading
import time

import pytest

from robust_queue.processes.guards import Guard, Interrupt


def in_its_thread(task):
    """Call a task under a guard; returns the guard, the thread and what came of it."""
    made, outcome = threading.Event(), []

    def run():
        guard = Guard()
        outcome.append(guard)
        made.set()
        try:
            outcome.append(guard.call(task, (), {}))
        except BaseException as error:
            outcome.append(error)
        # What comes after it runs on, undisturbed.
        outcome.append(sum(range(200_000)))

    thread = threading.Thread(target=run)
    thread.start()
    assert made.wait(5)
    return thread, outcome


def busy():
    while True:
        pass


def swallow(inside, enough):
    while not enough.is_set():
        try:
            inside.set()
            while not enough.is_set():
                pass
        except BaseException:  # noqa: S112 (that is the point)
            continue
    return "swallowed"


@pytest.fixture
def nimble():
    """Threads take turns far more often than they usually do."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_a_busy_task_is_interrupted():
    thread, outcome = in_its_thread(busy)
    assert outcome[0].strike() is True
    thread.join(5)
    guard, error, after = outcome
    assert isinstance(error, Interrupt)
    assert guard.has_struck
    assert after == sum(range(200_000))


def test_each_is_struck_once():
    thread, outcome = in_its_thread(busy)
    assert [outcome[0].strike() for _ in range(3)] == [True, False, False]
    thread.join(5)


def test_one_that_has_ended_is_left_alone():
    thread, outcome = in_its_thread(lambda: "done")
    thread.join(5)
    assert outcome[0].strike() is False
    assert outcome[1:] == ["done", sum(range(200_000))]


def test_one_that_swallows_it_is_known_to_have_been_struck():
    inside, enough = threading.Event(), threading.Event()
    thread, outcome = in_its_thread(lambda: swallow(inside, enough))
    assert inside.wait(5)
    assert outcome[0].strike() is True
    time.sleep(0.05)  # it strikes at once where Python runs
    enough.set()
    thread.join(5)
    guard, came, after = outcome
    assert guard.has_struck
    # Python lets some of them escape the very block that would catch them.
    assert came == "swallowed" or isinstance(came, Interrupt)
    assert after == sum(range(200_000))


def test_one_that_waits_in_c_is_struck_when_it_comes_back():
    thread, outcome = in_its_thread(lambda: time.sleep(0.3))
    assert outcome[0].strike() is True
    thread.join(5)
    assert isinstance(outcome[1], Interrupt)


def test_an_interrupt_never_strikes_what_comes_after(nimble):
    """The race: the task ends while the interrupt is on its way."""
    struck = ended = 0
    for i in range(400):
        pause = (i % 20) / 5_000

        def task():
            ends = time.perf_counter() + 0.002
            while time.perf_counter() < ends:
                pass
            return "done"

        thread, outcome = in_its_thread(task)
        time.sleep(pause)
        won = outcome[0].strike()
        thread.join(5)
        assert not thread.is_alive()
        guard, came, after = outcome
        assert guard.has_struck == won
        assert after == sum(range(200_000)), "it was struck behind its task"
        if won:
            struck += 1
            assert came == "done" or isinstance(came, Interrupt)
        else:
            ended += 1
            assert came == "done"
    assert struck, "no race was met"
    assert ended, "no race was met"
