"""Intervals: one way to say each, and the same instants for everybody."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_queue.schedules import Schedule

BERLIN = ZoneInfo("Europe/Berlin")
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
ANCHOR = datetime(2001, 1, 1, tzinfo=UTC)


def utc(*numbers):
    return datetime(*numbers, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("every second", "every second"),
        ("every 90 seconds", "every 90 seconds"),
        ("Every 5 Minutes", "every 5 minutes"),
        ("every 1 hours", "every hour"),
        ("every 2 hours", "every 2 hours"),
        ("every 3 days", "every 3 days"),
        ("every 60 seconds", "every minute"),
        ("EVERY 24 HOUR", "every day"),
        ("every week", "every week"),
        ("every 366 days", "every 366 days"),
        ("every 31622400 seconds", "every 366 days"),
        (timedelta(seconds=90), "every 90 seconds"),
        (timedelta(minutes=5), "every 5 minutes"),
        (timedelta(days=14), "every 2 weeks"),
        (timedelta(hours=36), "every 36 hours"),
    ],
)
def test_one_way_to_say_it(written, text):
    assert str(Schedule(written)) == text
    assert Schedule(written) == Schedule(text)


@pytest.mark.parametrize(
    "written",
    [
        "every",
        "every 0 minutes",
        "every -1 minutes",
        "every 1.5 hours",
        "every 5m",
        "every month",
        "every 367 days",
        "every 53 weeks",
        "every 999999999999 seconds",
        "every ٣ days",
        "every 5 \u017feconds",
        "every 5 minutes * *",
        "everyday",
        timedelta(0),
        timedelta(seconds=-5),
        timedelta(milliseconds=500),
        timedelta(seconds=1, microseconds=1),
        timedelta(days=366, seconds=1),
        timedelta.max,
    ],
)
def test_nonsense_is_refused(written):
    with pytest.raises(ValueError, match="from 1 second to 366 days") as caught:
        Schedule(written)
    assert f"{written!r} is no schedule" in str(caught.value)


def test_weeks_begin_on_monday_at_midnight():
    found = Schedule("every week").next_after(utc(2026, 1, 1), BERLIN)
    assert found == utc(2026, 1, 5)


def test_they_have_no_beginning():
    found = Schedule("every 2 days").upcoming(utc(2000, 12, 29), UTC, 3)
    assert found == [utc(2000, 12, 30), utc(2001, 1, 1), utc(2001, 1, 3)]


@pytest.mark.parametrize("day", [utc(2026, 3, 29), utc(2026, 10, 25)])
def test_clocks_that_are_turned_do_not_matter(day):
    found = Schedule("every 2 hours").upcoming(day, BERLIN)
    assert found == [day + n * timedelta(hours=2) for n in range(1, 6)]


@given(
    period=st.integers(1, 366 * 86_400).map(lambda seconds: seconds * SECOND),
    moment=st.timedeltas(-9_999 * DAY, 9_999 * DAY).map(ANCHOR.__add__),
    length=st.timedeltas(timedelta(0), 9 * DAY),
)
def test_any_interval(period, moment, length):
    schedule = Schedule(period)
    assert Schedule(str(schedule)) == schedule
    instant = schedule.next_after(moment, BERLIN)
    assert moment < instant <= moment + period
    assert not (instant - ANCHOR) % period
    span = {"after": moment, "until": moment + length, "zone": BERLIN}
    number = len(range(0, (moment + length - instant) // SECOND + 1, period // SECOND))
    assert schedule.count(**span, most=10**6) == number
    last = [instant + each * period for each in range(number)[-3:]]
    assert schedule.latest(3, **span) == last
