"""Schedules: what is understood, what is refused, and when the next instant is."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_queue.schedules import Schedule

BERLIN = ZoneInfo("Europe/Berlin")
SOME = [
    "* * * * *",
    "*/7 3-5 * * *",
    "30 2 * * *",
    "@daily",
    "0 0 29 2 *",
    "59 0 0 * * 1",
]
ZONES = ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Asia/Tokyo"]


EARLY = datetime(1990, 1, 1, tzinfo=UTC)


def utc(*numbers):
    return datetime(*numbers, tzinfo=UTC)


def runs(text, start, count, zone=UTC):
    found = [start]
    for _ in range(count):
        found.append(Schedule(text).next_after(found[-1], zone))
    return found[1:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 12 * * *", utc(2026, 1, 1, 12)),
        ("*/15 * * * *", utc(2026, 1, 1, 0, 45)),
        ("30 * * * * *", utc(2026, 1, 1, 0, 30, 30)),
        ("*/10 31 0 * * *", utc(2026, 1, 1, 0, 31)),
        ("@hourly", utc(2026, 1, 1, 1)),
        ("@daily", utc(2026, 1, 2)),
        ("@midnight", utc(2026, 1, 2)),
        ("@weekly", utc(2026, 1, 4)),
        ("@monthly", utc(2026, 2, 1)),
        ("@yearly", utc(2027, 1, 1)),
        ("0 8 * * mon-fri", utc(2026, 1, 1, 8)),
        ("0 0 L * *", utc(2026, 1, 31)),
        ("0 0 * * 5#2", utc(2026, 1, 9)),
        ("0 0 29 2 *", utc(2028, 2, 29)),
    ],
)
def test_the_next_instant(text, expected):
    assert Schedule(text).next_after(utc(2026, 1, 1, 0, 30), UTC) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "12",
        "* * * *",
        "60 * * * *",
        "*/0 * * * *",
        "0 0 * * * * 2030",
        "@reboot",
        "@every 5m",
        "H H * * *",
        "0 0 30 2 *",
        "0 0 31 4,6 *",
    ],
)
def test_nonsense_is_refused_by_its_text(text):
    with pytest.raises(ValueError, match="is no schedule") as caught:
        Schedule(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", [None, 5, timedelta(minutes=5), b"* * * * *"])
def test_only_text_is_a_schedule(text):
    with pytest.raises(ValueError, match="Write five fields"):
        Schedule(text)


@pytest.mark.parametrize("text", ["R * * * *", "r(0-5) * * * *", "0 R/2 * * *"])
def test_random_times_are_refused(text):
    with pytest.raises(ValueError, match="another time each time"):
        Schedule(text)


def test_white_space_makes_no_difference():
    assert Schedule(" 0  12 * *\t* ") == Schedule("0 12 * * *")
    assert str(Schedule(" @daily\n")) == "@daily"


def test_an_instant_is_never_its_own_successor():
    noon = utc(2026, 1, 1, 12)
    assert Schedule("0 12 * * *").next_after(noon, UTC) == noon + timedelta(days=1)


def test_a_fraction_of_a_second_is_enough():
    noon = utc(2026, 1, 1, 12)
    schedule = Schedule("0 12 * * *")
    little = timedelta(microseconds=1)
    assert schedule.next_after(noon - little, UTC) == noon
    assert schedule.next_after(noon + little, UTC) == noon + timedelta(days=1)


def test_the_clock_is_the_zones():
    winter, summer = utc(2026, 1, 1), utc(2026, 7, 1)
    schedule = Schedule("0 12 * * *")
    assert schedule.next_after(winter, BERLIN) == utc(2026, 1, 1, 11)
    assert schedule.next_after(summer, BERLIN) == utc(2026, 7, 1, 10)


def test_the_answer_is_in_utc_whatever_the_zone_of_the_moment():
    moment = datetime(2026, 1, 1, 9, tzinfo=ZoneInfo("Asia/Tokyo"))
    found = Schedule("@hourly").next_after(moment, BERLIN)
    assert found == utc(2026, 1, 1, 1)
    assert found.tzinfo is UTC


def test_leap_days_over_a_century_that_has_none():
    assert runs("0 0 29 2 *", utc(2093, 1, 1), 2) == [
        utc(2096, 2, 29),
        utc(2104, 2, 29),
    ]


class TestClocksThatAreTurned:
    """The rules for it all are yet to be written; these hold already."""

    def test_a_time_that_is_shown_twice_counts_once(self):
        assert runs("30 2 * * *", utc(2026, 10, 24, 12), 2, BERLIN) == [
            utc(2026, 10, 25, 0, 30),
            utc(2026, 10, 26, 1, 30),
        ]

    def test_also_for_whoever_asks_between_the_two(self):
        between = utc(2026, 10, 25, 1, 10)
        found = Schedule("30 2 * * *").next_after(between, BERLIN)
        assert found == utc(2026, 10, 26, 1, 30)

    def test_every_half_hour_stays_every_half_hour(self):
        for start in (utc(2026, 10, 25), utc(2026, 3, 29)):
            found = runs("*/30 * * * *", start, 6, BERLIN)
            assert found == [start + timedelta(minutes=30 * n) for n in range(1, 7)]

    def test_a_time_that_is_left_out_is_not_missed(self):
        found = runs("30 2 * * *", utc(2026, 3, 28, 12), 2, BERLIN)
        assert [each.date().day for each in found] == [29, 30]


@given(
    text=st.sampled_from(SOME),
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    moment=st.timedeltas(timedelta(0), timedelta(days=50 * 365)).map(EARLY.__add__),
)
def test_the_next_instant_is_always_later(text, zone, moment):
    schedule = Schedule(text)
    found = schedule.next_after(moment, zone)
    assert found > moment
    # And nobody who asks in between gets another answer.
    assert schedule.next_after(moment + (found - moment) / 2, zone) == found
