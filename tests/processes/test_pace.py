"""How soon a worker looks again."""

import pytest

from robust_queue.lifecycle.wake import SILENCE
from robust_queue.processes import clock
from robust_queue.processes.pace import RARELY, SECOND_LOOK, Pace


@pytest.fixture
def time(monkeypatch):
    """A clock that stands still until it is told."""

    class Time:
        now = 1000.0

    monkeypatch.setattr(clock, "now", lambda: Time.now)
    return Time


def test_without_news_it_is_steady(time):
    pace = Pace(10, hears=lambda: False)
    for _ in range(20):
        assert 7.5 <= pace.pause(time.now) <= 12.5
        time.now += 10


def test_with_news_it_slows_down_to_a_few_seconds(time):
    pace = Pace(60, hears=lambda: True)
    pace.quicken()
    pauses = []
    for _ in range(15):
        pauses.append(pace.pause(time.now))
        time.now += pauses[-1]
    assert pauses[0] == pytest.approx(SECOND_LOOK)
    assert sum(pauses[:5]) < 2
    assert all(0.75 * RARELY <= each <= 1.25 * RARELY for each in pauses[-3:])


def test_the_second_look_comes_after_the_silence_of_senders(time):
    assert SECOND_LOOK > 2 * SILENCE


def test_looks_in_between_do_not_put_the_second_one_off(time):
    pace = Pace(60, hears=lambda: True)
    pace.quicken()
    planned = time.now + SECOND_LOOK
    for _ in range(20):  # tasks that end, one after the other
        assert time.now + pace.pause(time.now) == pytest.approx(planned)
        time.now += SECOND_LOOK / 25
    time.now = planned
    assert pace.pause(time.now) > SECOND_LOOK


def test_a_look_that_was_begun_too_early_is_not_the_second_one(time):
    pace = Pace(60, hears=lambda: True)
    pace.quicken()
    begun = time.now + SECOND_LOOK / 2
    time.now += 2 * SECOND_LOOK  # the statement took that long
    assert pace.pause(begun) == 0.0


def test_work_is_expected_after_work_and_not_after_a_look_in_vain(time):
    pace = Pace(0.1, hears=lambda: False)
    pace.quicken()
    assert pace.is_busy
    time.now += 0.1
    pace.pause(time.now)
    assert not pace.is_busy
    pace.quicken()
    assert pace.is_busy
