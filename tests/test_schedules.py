"""Schedules: what is understood, what is refused, and when the instants are."""

import pickle
from datetime import UTC, datetime, timedelta, timezone
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
    "every 90 seconds",
]
ZONES = ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Asia/Tokyo"]
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
EARLY = datetime(1990, 1, 1, tzinfo=UTC)
moments = st.timedeltas(timedelta(0), 50 * 365 * DAY).map(EARLY.__add__)


def utc(*numbers):
    return datetime(*numbers, tzinfo=UTC)


class TestCrontabs:
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
            ("@Monthly", utc(2026, 2, 1)),
            ("@yearly", utc(2027, 1, 1)),
            ("@annually", utc(2027, 1, 1)),
            ("0 8 * * mon-fri", utc(2026, 1, 1, 8)),
            ("0 8 * FEB *", utc(2026, 2, 1, 8)),
            ("0 22-2 * * *", utc(2026, 1, 1, 1)),
            ("0 0 L * *", utc(2026, 1, 31)),
            ("0 0 * * 5#2", utc(2026, 1, 9)),
            ("0 0 * * mon-tue#2", utc(2026, 1, 12)),
            ("0 0 * * sun-sat#2", utc(2026, 1, 8)),
            ("0 0 * * L5", utc(2026, 1, 30)),
            ("0 0 29 2 *", utc(2028, 2, 29)),
            ("0 0 * 2 0#5", utc(2032, 2, 29)),
            # From a number to itself is that number.
            ("0 5-5 * * *", utc(2026, 1, 1, 5)),
            ("0 5-5/2 * * *", utc(2026, 1, 1, 5)),
            ("0 0 * * Mon-mon#1", utc(2026, 1, 5)),
            # Of two fields for days either is enough.
            ("0 0 13 * fri", utc(2026, 1, 2)),
            ("0 0 5 * 5#2", utc(2026, 1, 5)),
            ("0 0 31 4 tue", utc(2026, 4, 7)),
        ],
    )
    def test_the_next_instant(self, text, expected):
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
            "1-1-1 * * * *",
            "1,,2 * * * *",
            "0 0 * * * * 2030",
            "@reboot",
            "@every 5m",
            "H H * * *",
            "0 0 15W * *",
            "0 0 30 2 *",
            "0 0 31 4,6 *",
            "0 0 * * 5#6",
            "0 0 * * mon,fri#2",
            "0 0 * * *,fri#2",
            pytest.param(f"{'9' * 5000} * * * *", id="too many digits"),
        ],
    )
    def test_nonsense_is_refused_by_its_text(self, text):
        with pytest.raises(ValueError, match="is no schedule") as caught:
            Schedule(text)
        assert repr(text) in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("text", ["R * * * *", "r(0-5) * * * *", "0 R/2 * * *"])
    def test_random_times_are_refused(self, text):
        with pytest.raises(ValueError, match="another time each time"):
            Schedule(text)

    def test_leap_days_over_a_century_that_has_none(self):
        found = Schedule("0 0 29 2 *").upcoming(utc(2093, 1, 1), UTC, 2)
        assert found == [utc(2096, 2, 29), utc(2104, 2, 29)]

    def test_the_clock_is_the_zones(self):
        schedule = Schedule("0 12 * * *")
        assert schedule.next_after(utc(2026, 1, 1), BERLIN) == utc(2026, 1, 1, 11)
        assert schedule.next_after(utc(2026, 7, 1), BERLIN) == utc(2026, 7, 1, 10)


class TestText:
    @pytest.mark.parametrize("text", [None, 5, 5.0, True, b"* * * * *", ["@daily"]])
    def test_only_text_is_a_schedule(self, text):
        with pytest.raises(ValueError, match="Write five fields"):
            Schedule(text)

    def test_white_space_makes_no_difference(self):
        assert Schedule(" 0  12 * *\t* ") == Schedule("0 12 * * *")
        assert str(Schedule(" @daily\n")) == "@daily"
        assert str(Schedule(" every\n 5  minutes ")) == "every 5 minutes"

    def test_it_is_a_value(self):
        schedule = Schedule("0 12 * * *")
        assert len({schedule, Schedule("0  12 * * *"), Schedule("@daily")}) == 2
        assert repr(schedule) == "Schedule(text='0 12 * * *')"
        assert pickle.loads(pickle.dumps(schedule)) == schedule  # noqa: S301
        with pytest.raises(AttributeError):
            schedule.text = "@daily"


class TestInstants:
    def test_an_instant_is_never_its_own_successor(self):
        noon = utc(2026, 1, 1, 12)
        assert Schedule("0 12 * * *").next_after(noon, UTC) == noon + DAY

    def test_a_fraction_of_a_second_is_enough(self):
        noon, little = utc(2026, 1, 1, 12), timedelta(microseconds=1)
        for schedule in (Schedule("0 12 * * *"), Schedule("0 12-13 * * *")):
            assert schedule.next_after(noon - little, UTC) == noon
            assert schedule.next_after(noon + little, UTC) > noon

    def test_the_answer_is_in_utc_whatever_the_zone_of_the_moment(self):
        moment = datetime(2026, 1, 1, 9, tzinfo=ZoneInfo("Asia/Tokyo"))
        found = Schedule("@hourly").next_after(moment, BERLIN)
        assert found == utc(2026, 1, 1, 1)
        assert found.tzinfo is UTC

    def test_five_are_upcoming(self):
        found = Schedule("0 */6 * * *").upcoming(utc(2026, 1, 1), UTC)
        assert found == [utc(2026, 1, 1) + timedelta(hours=6 * n) for n in range(1, 6)]

    @pytest.mark.parametrize("text", ["* * * * * *", "every second"])
    def test_the_latest_of_a_year_of_seconds(self, text):
        now = utc(2026, 1, 1)
        span = {"after": now - 365 * DAY, "until": now, "zone": BERLIN}
        expected = [now - 2 * SECOND, now - SECOND, now]
        assert Schedule(text).latest(3, **span) == expected
        assert Schedule(text).count(**span) is None

    def test_the_latest_after_a_crowd_and_a_long_silence(self):
        schedule, now = Schedule("* * * 1 1 *"), utc(2026, 12, 31)
        found = schedule.latest(2, after=EARLY, until=now, zone=UTC)
        assert found == [utc(2026, 1, 1, 23, 59, 58), utc(2026, 1, 1, 23, 59, 59)]

    def test_the_beginning_is_out_and_the_end_is_in(self):
        schedule, noon = Schedule("0 12 * * *"), utc(2026, 1, 1, 12)
        span = {"after": noon, "until": noon + 2 * DAY, "zone": UTC}
        assert schedule.latest(9, **span) == [noon + DAY, noon + 2 * DAY]
        assert schedule.count(**span) == 2

    def test_nothing_lies_between_a_later_and_an_earlier_moment(self):
        span = {"after": utc(2026, 1, 2), "until": utc(2026, 1, 1), "zone": UTC}
        for text in SOME:
            assert Schedule(text).latest(9, **span) == []
            assert Schedule(text).count(**span) == 0

    def test_they_are_counted_up_to_a_limit(self):
        span = {"after": utc(2026, 1, 1), "until": utc(2026, 1, 2), "zone": UTC}
        for text in ("*/30 * * * *", "every 30 minutes"):
            assert Schedule(text).count(**span, most=48) == 48
            assert Schedule(text).count(**span, most=47) is None
        assert Schedule("every second").count(**span, most=90_000) == 86_400

    @given(
        text=st.sampled_from(SOME),
        zone=st.sampled_from(ZONES).map(ZoneInfo),
        moment=moments,
    )
    def test_the_next_instant_is_always_later(self, text, zone, moment):
        schedule = Schedule(text)
        found = schedule.next_after(moment, zone)
        assert found > moment
        # And nobody who asks in between gets another answer.
        assert schedule.next_after(moment + (found - moment) / 2, zone) == found
        assert schedule.latest(2, after=moment, until=found, zone=zone) == [found]


class TestEnds:
    @pytest.mark.parametrize("text", SOME)
    @pytest.mark.parametrize("zone", ZONES)
    def test_the_calendar_has_two(self, text, zone):
        schedule, zone = Schedule(text), ZoneInfo(zone)
        early, late = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
        with pytest.raises(OverflowError, match="the calendar ends"):
            schedule.next_after(late, zone)
        assert schedule.upcoming(late, zone) == []
        assert (
            schedule.latest(5, after=early, until=early + SECOND / 2, zone=zone) == []
        )
        assert schedule.count(after=late, until=late, zone=zone) == 0

    def test_a_moment_beyond(self):
        late = datetime.max.replace(tzinfo=timezone(-DAY / 2))
        with pytest.raises(OverflowError, match="the calendar ends"):
            Schedule("@daily").next_after(late, UTC)

    def test_a_time_without_a_zone_is_no_moment(self):
        with pytest.raises(ValueError, match="has no zone"):
            Schedule("@daily").next_after(datetime(2026, 1, 1), BERLIN)  # noqa: DTZ001
