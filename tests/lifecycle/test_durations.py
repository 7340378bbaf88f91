"""Histograms of durations: how far from the truth they may be."""

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_queue.lifecycle.durations import MICROSECOND, Durations, step_of

MONTH = 31 * 24 * 3600 * 10**6
microseconds = st.integers(0, MONTH) | st.integers(0, 10**6)
# A step; what a timedelta can tell comes on top.
MOST_WRONG = 2**0.25


def histogram(times):
    return Durations(map(step_of, (each * MICROSECOND for each in times)))


@given(st.lists(microseconds, min_size=1), st.sampled_from([0.0, 0.5, 0.95, 1.0]))
def test_a_percentile_is_within_19_percent_of_the_truth(times, share):
    true = sorted(times)[max(math.ceil(share * len(times)), 1) - 1]
    found = histogram(times).percentile(share) / MICROSECOND
    assert true / MOST_WRONG - 0.5 <= found <= true * MOST_WRONG + 0.5


@given(st.lists(microseconds), st.lists(microseconds))
def test_what_is_written_and_put_together_is_what_was_counted(some, others):
    together = Durations.of(histogram(some).text)
    together.update(Durations.of(histogram(others).text))
    assert together == histogram(some + others)


@given(microseconds, microseconds)
def test_what_takes_longer_is_never_in_a_lower_step(one, other):
    first, second = sorted([one, other])
    assert step_of(first * MICROSECOND) <= step_of(second * MICROSECOND)


def test_inside_a_step_places_are_shared_out():
    alike = Durations({step_of(timedelta(seconds=1)): 100})
    shares = [alike.percentile(share / 100) for share in (1, 50, 99)]
    assert shares == sorted(set(shares))


def test_nothing_has_no_percentile():
    assert Durations.of("").percentile(0.5) is None


def test_what_began_too_early_took_no_time():
    assert step_of(-timedelta(seconds=3)) == step_of(timedelta(0)) == 0


@pytest.mark.parametrize("days", [1, 3650])
def test_years_take_as_little_room_as_moments(days):
    assert len(Durations([step_of(timedelta(days=days))]).text) <= 5
