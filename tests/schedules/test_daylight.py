"""Schedules when clocks are turned: known cases, and all kinds that there are."""

import struct
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_queue.schedules import Schedule
from tests.schedules.patterns import dated, pattern
from tests.support.daylight import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Walk,
    compare,
    expected,
    turns_of_zones,
)

# Zone, schedule, whence, and the instants that follow, all in UTC.
FORWARD = [
    ("Europe/Berlin", "30 2 * * *", "2026-03-28 12:00", "03-29 01:00, 03-30 00:30"),
    ("Europe/Berlin", "*/15 2 * * *", "2026-03-28 12:00", "03-29 01:00, 03-30 00:00"),
    ("Europe/Berlin", "0 2,3 * * *", "2026-03-28 12:00", "03-29 01:00, 03-30 00:00"),
    ("Europe/Berlin", "30 * * * *", "2026-03-29 00:00", "03-29 00:30, 03-29 01:30"),
    ("Europe/Berlin", "30 2 * * sun", "2026-03-28 12:00", "03-29 01:00, 04-05 00:30"),
    ("Europe/Berlin", "@daily", "2026-03-28 12:00", "03-28 23:00, 03-29 22:00"),
    (
        "Australia/Lord_Howe",
        "15 2 * * *",
        "2026-10-03 12:00",
        "10-03 15:30, 10-04 15:15",
    ),
    (
        "Australia/Lord_Howe",
        "0 * * * *",
        "2026-10-03 15:00",
        "10-03 16:00, 10-03 17:00",
    ),
    ("America/Havana", "0 0 * * *", "2026-03-08 00:00", "03-08 05:00, 03-09 04:00"),
    ("America/Havana", "30 0 * * sun", "2026-03-08 00:00", "03-08 05:00, 03-15 04:30"),
    ("America/Santiago", "0 0 * * *", "2026-09-06 00:00", "09-06 04:00, 09-07 03:00"),
    (
        "Antarctica/Troll",
        "30 1,2 * * *",
        "2026-03-29 00:00",
        "03-29 01:00, 03-29 23:30",
    ),
    (
        "Antarctica/Casey",
        "*/9 2-4 * * *",
        "2009-10-17 12:00",
        "10-17 18:00, 10-18 15:00",
    ),
    ("Pacific/Apia", "0 12 * * *", "2011-12-29 23:00", "12-30 10:00, 12-30 22:00"),
    ("Pacific/Apia", "0 0 * * *", "2011-12-29 23:00", "12-30 10:00, 12-31 10:00"),
    ("Pacific/Apia", "0 0 30 12 *", "2011-12-29 23:00", "12-30 10:00"),
    ("Pacific/Apia", "0 12 * * fri", "2011-12-29 23:00", "12-30 10:00, 01-05 22:00"),
    ("Pacific/Apia", "0 * 30,31 12 *", "2011-12-29 23:00", "12-30 10:00, 12-30 11:00"),
]
BACK = [
    ("Europe/Berlin", "30 2 * * *", "2026-10-24 12:00", "10-25 00:30, 10-26 01:30"),
    # Asked between the two showings, and in the second one.
    ("Europe/Berlin", "30 2 * * *", "2026-10-25 01:10", "10-26 01:30"),
    ("Europe/Berlin", "0 3 * * *", "2026-10-25 01:40", "10-25 02:00, 10-26 02:00"),
    ("Europe/Berlin", "*/30 2-3 * * *", "2026-10-25 00:00", "10-25 00:30, 10-25 02:00"),
    ("Europe/Berlin", "*/30 * * * *", "2026-10-25 00:10", "10-25 00:30, 10-25 01:00"),
    ("Europe/Berlin", "5 0-23 * * *", "2026-10-25 00:10", "10-25 01:05, 10-25 02:05"),
    ("Europe/Berlin", "15 2 * * *", "2026-10-25 01:59", "10-26 01:15"),
    (
        "Australia/Lord_Howe",
        "45 1 * * *",
        "2026-04-04 12:00",
        "04-04 14:45, 04-05 15:15",
    ),
    (
        "Australia/Lord_Howe",
        "45 * * * *",
        "2026-04-04 14:40",
        "04-04 14:45, 04-04 15:15",
    ),
    ("America/Havana", "0 0 * * *", "2026-11-01 00:00", "11-01 04:00, 11-02 05:00"),
    ("America/Santiago", "30 23 * * 6", "2026-04-05 00:00", "04-05 02:30, 04-12 03:30"),
    ("America/Santiago", "0 0 * * sun", "2026-04-05 00:00", "04-05 04:00, 04-12 04:00"),
    (
        "Antarctica/Troll",
        "30 1,2 * * *",
        "2026-10-24 23:00",
        "10-24 23:30, 10-25 00:30",
    ),
    (
        "Antarctica/Troll",
        "30 1,2 * * *",
        "2026-10-25 00:30",
        "10-26 01:30, 10-26 02:30",
    ),
    ("Antarctica/Casey", "30 0 * * *", "2010-03-04 12:00", "03-04 13:30, 03-05 16:30"),
    ("Antarctica/Casey", "30 * 5 3 *", "2010-03-04 14:00", "03-04 14:30, 03-04 16:30"),
    # The same offset now and in a year, but not throughout.
    (
        "America/Sao_Paulo",
        "10 * 17 2 *",
        "2018-02-18 01:00",
        "02-18 01:10, 02-18 02:10",
    ),
]


def moment(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(("name", "text", "whence", "instants"), [*FORWARD, *BACK])
def test_known_cases(name, text, whence, instants):
    found = Schedule(text).upcoming(moment(whence), ZoneInfo(name), 2)
    told = [f"{each:%m-%d %H:%M}" for each in found]
    assert told[: len(instants.split(", "))] == instants.split(", ")


def test_a_date_that_is_a_year_away():
    schedule, zone = Schedule("10 * 17 2 *"), ZoneInfo("America/Sao_Paulo")
    last = moment("2018-02-18 02:10")
    # That day begins an hour late, because the evening before is repeated.
    assert schedule.next_after(last, zone) == moment("2019-02-17 03:10")
    span = {"after": moment("2018-02-18 01:00"), "until": moment("2019-02-17 03:09")}
    assert schedule.latest(9, **span, zone=zone) == [last - HOUR, last]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 8 30 12 *", "2011-12-30 10:00"),
        ("0 * 30 12 *", "2012-12-29 10:00"),
        ("0 * 31 12 *", "2011-12-30 10:00"),
    ],
)
def test_a_date_that_is_left_out(text, expected):
    early, apia = moment("2011-06-01"), ZoneInfo("Pacific/Apia")
    assert Schedule(text).next_after(early, apia) == moment(expected)


def test_a_clock_that_is_put_back_after_two_days():
    """None has been so soon. It shows 00:15 twice, and the offset of now only later."""
    zone = zone_of("WINTER0SUMMER,J100/0,J102/0:30")
    found = Schedule("15 * 12 4 *").upcoming(moment("2026-04-09 12:00"), zone, 2)
    assert found == [moment("2026-04-11 23:15"), moment("2026-04-12 00:15")]


def zone_of(rule):
    """A zone by nothing but a rule as in the environment variable TZ."""
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    block = b"TZif2" + bytes(15) + counts + bytes(6) + b"UTC\0"
    return ZoneInfo.from_file(BytesIO(block + block + f"\n{rule}\n".encode()))


def test_an_hour_of_seconds_that_were_shown_before():
    schedule, berlin = Schedule("* * 2 * * *"), ZoneInfo("Europe/Berlin")
    found = schedule.next_after(moment("2026-10-25 01:00"), berlin)
    assert found == moment("2026-10-26 01:00")


# ── All kinds that there are ───────────────────────────────────────────────────


@cache
def kinds():
    """One turn of each kind, over all zones and fifty years."""
    distinct = {each.kind: each for turns in turns_of_zones() for each in turns}
    return list(distinct.values())


def test_clocks_are_turned_at_whole_minutes():
    """Or else the oracle, which walks in minutes, would miss it."""
    assert len(kinds()) > 100
    for turn in kinds():
        assert turn.instant.second == turn.before % MINUTE // SECOND == 0


def test_each_kind_of_turn():
    for turn in kinds():
        random, walk = Random(str(turn)), Walk.around(turn)
        for _ in range(2):
            one = pattern(random, walk.walls)
            compare(Schedule(one.text), one, walk, random)


def test_each_kind_of_turn_from_far_away():
    """The only date is that of the turn, and whoever asks is most of a year away."""
    far = 300 * DAY
    for turn in kinds():
        random, walk = Random(str(turn)), Walk.around(turn, by=50 * HOUR)
        one = dated(random, random.choice(dates_near(turn)))
        instants = expected(one, walk)
        schedule, after, until = Schedule(one.text), walk.start - far, walk.end + far
        found = schedule.upcoming(after, walk.zone, len(instants))
        assert found == instants, (one, turn)
        asked = {"after": walk.start, "until": until, "zone": walk.zone}
        assert schedule.latest(9_999, **asked) == instants, (one, turn)


def dates_near(turn):
    """One time of each date that the clock shows or leaves out about then."""
    walls = Walk.around(turn, by=MINUTE).walls
    return list({wall.date(): wall for wall in walls}.values())


@settings(max_examples=100, deadline=None)
@given(data=st.data(), random=st.randoms(use_true_random=False))
def test_any_crontab_at_any_turn(data, random):
    turn = data.draw(st.sampled_from(kinds()))
    walk = Walk.around(turn)
    one = pattern(random, walk.walls)
    compare(Schedule(one.text), one, walk, random)


@settings(max_examples=20, deadline=None)
@given(data=st.data(), random=st.randoms(use_true_random=False))
def test_seconds(data, random):
    turn = data.draw(st.sampled_from([each for each in kinds() if each.step <= HOUR]))
    walk = Walk.around(turn, by=turn.step + 10 * MINUTE, step=SECOND)
    one = pattern(random, walk.walls, seconds=True)
    compare(Schedule(one.text), one, walk, random)
