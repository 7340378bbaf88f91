"""How far ahead a worker takes jobs, with a clock that stands still unless told."""

import pytest

from robust_queue.processes.foresight import HORIZON, LONG, MOST, STALE, Foresight

SIZE = 3


class Working:
    """A lane that ends as many jobs as it is told, and asks how many to hold."""

    def __init__(self, size=SIZE):
        self.foresight = Foresight(size)
        self.now = 1000.0
        self.foresight.begin(self.now)

    def after(self, seconds, ended, turnaround=0.0):
        self.now += seconds
        self.foresight.learn(ended, turnaround=turnaround, now=self.now)
        return self.foresight.ahead


@pytest.fixture
def working():
    return Working()


def test_nothing_is_held_before_anything_has_ended(working):
    assert working.foresight.ahead == 0
    assert working.after(1.0, 0) == 0


def test_tiny_tasks_are_taken_ahead_and_ever_more_of_them(working):
    first = working.after(0.001, 3)
    second = working.after(0.003, 9)
    third = working.after(0.009, 27)
    assert (first, second, third) == (6, 18, 54), "never more than twice what was done"


def test_not_more_than_will_have_begun_a_moment_later(working):
    for _ in range(10):
        ahead = working.after(0.01, 20)
    assert ahead == 40, "twice what was done, at most"
    for _ in range(10):
        ahead = working.after(0.02, 40)
    assert ahead == 2000 * HORIZON


def test_there_is_an_end_to_it(working):
    for _ in range(10):
        ahead = working.after(0.01, 1000)
    assert ahead == MOST


@pytest.mark.parametrize("seconds", [LONG * 1.1, 1.0, 60.0])
def test_long_tasks_are_left_to_others(working, seconds):
    for _ in range(10):
        assert working.after(seconds, SIZE) == 0


def test_many_that_are_not_long_keep_all_threads_busy():
    working = Working(size=20)
    for _ in range(10):
        ahead = working.after(0.01, 20)
    assert ahead >= 20, "20 threads of 10 ms each need as many more"


def test_a_slow_database_is_asked_for_more():
    quick, slow = Working(), Working()
    for _ in range(10):
        soon = quick.after(0.04, 40)
        late = slow.after(0.04, 40, turnaround=0.03)
    assert late > soon
    assert late <= 1000 * STALE, "but nobody holds what will have to go back"


def test_when_tasks_become_long_little_is_held_after_a_few_rounds(working):
    for _ in range(10):
        working.after(0.01, 100)
    held = [working.after(0.5, 1) for _ in range(10)]
    assert held[0] <= 2
    assert held[-1] == 0


def test_who_was_wrong_begins_anew(working):
    for _ in range(10):
        working.after(0.01, 100)
    working.foresight.forget()
    assert working.foresight.ahead == 0
    assert working.after(0.01, 2) <= 4


def test_idle_time_does_not_count(working):
    working.now += 3600
    working.foresight.begin(working.now)
    assert working.after(0.001, 3) == 6
