"""Delays between attempts: exact without jitter, never beyond their cap."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_queue import exponential, fixed, linear, polynomial
from robust_queue.backoffs import LONGEST_DELAY, from_list

ERROR = OSError("gone")
MINUTE = timedelta(minutes=1)


def seconds(backoff, *attempts):
    return [backoff(ERROR, attempt).total_seconds() for attempt in attempts]


@given(st.floats(0.001, 1e6), st.floats(1, 1e3), st.integers(0, 2_000))
def test_retry_n_waits_c_times_two_to_the_n(base, times, n):
    """Seed 000's schedule: c, 2c, 4c … up to the cap."""
    cap = timedelta(seconds=base) * times
    delay = exponential(base, cap=cap, jitter=0)(ERROR, n + 1)
    expected = min(base * 2 ** min(n, 100), cap.total_seconds())
    assert delay.total_seconds() == pytest.approx(expected, rel=1e-6, abs=1e-5)


def test_linear():
    assert seconds(linear(10, jitter=0), 1, 2, 3, 1000) == [10, 20, 30, 3600]


def test_polynomial():
    assert seconds(polynomial(jitter=0), 1, 2, 3) == [1, 16, 81]
    assert seconds(polynomial(2, power=2, cap=20, jitter=0), 1, 2, 3, 99) == [
        2,
        8,
        18,
        20,
    ]


def test_fixed():
    assert seconds(fixed(MINUTE, jitter=0), 1, 2, 50) == [60, 60, 60]


@given(st.integers(1, 40_000), st.floats(0, 1))
def test_jitter_stays_within_its_fraction(attempt, jitter):
    (found,) = seconds(fixed(100, jitter=jitter), attempt)
    assert 100 * (1 - jitter) - 1e-6 <= found <= 100 * (1 + jitter) + 1e-6


def test_a_list_is_followed_and_its_end_repeated():
    backoff = from_list([1, MINUTE, 5.5])
    assert seconds(backoff, 1, 2, 3, 4, 99) == [1, 60, 5.5, 5.5, 5.5]


@pytest.mark.parametrize("delays", [[], [-1], ["soon"], [True], [LONGEST_DELAY * 2]])
def test_lists_that_make_no_sense(delays):
    with pytest.raises(ValueError, match="delay"):
        from_list(delays)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: linear(0), "base"),
        (lambda: polynomial(power=-1), "power"),
        (lambda: fixed("soon"), "delay"),
        (lambda: fixed(10, jitter=2), "jitter"),
        (lambda: fixed(10, jitter=-1), "jitter"),
        (lambda: linear(10, cap=5), "cap"),
    ],
)
def test_values_that_make_no_sense(make, word):
    with pytest.raises(ValueError, match=word):
        make()


def test_they_are_values():
    assert linear() == linear(20)
    assert hash(fixed(5)) == hash(fixed(5))
    assert repr(from_list([1]))
