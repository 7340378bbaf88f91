"""Which instants run when some were missed, and which are written down as left out."""

from datetime import UTC, datetime, timedelta

import pytest

from robust_queue.lifecycle.ticks import decide
from robust_queue.models import RecurringTask

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def row(on_missed="run_once", schedule="@hourly", **changes):
    changes = {"key": "k", "next_run_at": NOON, "missed_limit": 100, **changes}
    return RecurringTask(schedule=schedule, on_missed=on_missed, **changes)


def judged(recurring, *, late):
    return decide(recurring, now=NOON + late, grace=MINUTE)


@pytest.mark.parametrize("policy", ["skip", "run_once", "run_all"])
class TestInTime:
    def test_one_instant_runs_and_the_next_comes(self, policy):
        verdict = judged(row(policy), late=timedelta(seconds=3))
        assert (verdict.runs, verdict.skipped) == ([NOON], [])
        assert verdict.next_run_at == NOON + HOUR

    def test_the_grace_is_in_time(self, policy):
        assert judged(row(policy), late=MINUTE).runs == [NOON]

    def test_of_those_that_come_faster_than_anybody_looks(self, policy):
        verdict = judged(row(policy, "* * * * * *"), late=timedelta(seconds=4))
        assert verdict.runs[-1] == NOON + timedelta(seconds=4)
        assert len(verdict.runs) == (5 if policy == "run_all" else 1)


class TestMissed:
    def test_skip(self):
        verdict = judged(row("skip"), late=3 * HOUR + 2 * MINUTE)
        (left_out,) = verdict.skipped
        assert verdict.runs == []
        assert (left_out.first, left_out.last) == (NOON, NOON + 3 * HOUR)
        assert (left_out.number, left_out.reason) == (4, "missed")
        assert verdict.next_run_at == NOON + 4 * HOUR

    def test_skip_runs_the_one_that_is_in_time(self):
        verdict = judged(row("skip"), late=3 * HOUR + MINUTE)
        assert verdict.runs == [NOON + 3 * HOUR]
        assert verdict.skipped[0].number == 3

    def test_skip_of_a_single_one(self):
        verdict = judged(row("skip"), late=2 * MINUTE)
        assert verdict.runs == []
        assert verdict.skipped[0].first == verdict.skipped[0].last == NOON

    def test_run_once_is_for_the_latest(self):
        verdict = judged(row("run_once"), late=3 * HOUR + 30 * MINUTE)
        (left_out,) = verdict.skipped
        assert verdict.runs == [NOON + 3 * HOUR]
        assert (left_out.first, left_out.last) == (NOON, NOON + 2 * HOUR)
        assert left_out.number == 3

    def test_run_once_of_a_single_one_however_late(self):
        verdict = judged(row("run_once"), late=59 * MINUTE)
        assert (verdict.runs, verdict.skipped) == ([NOON], [])

    def test_run_all(self):
        verdict = judged(row("run_all"), late=3 * HOUR)
        assert verdict.runs == [NOON + n * HOUR for n in range(4)]
        assert verdict.skipped == []

    def test_run_all_has_a_bound(self):
        verdict = judged(row("run_all", missed_limit=2), late=5 * HOUR)
        (left_out,) = verdict.skipped
        assert verdict.runs == [NOON + 4 * HOUR, NOON + 5 * HOUR]
        assert (left_out.first, left_out.last) == (NOON, NOON + 3 * HOUR)
        assert left_out.number == 4

    def test_as_many_as_the_bound_are_all(self):
        verdict = judged(row("run_all", missed_limit=6), late=5 * HOUR)
        assert (len(verdict.runs), verdict.skipped) == (6, [])

    def test_a_year_of_seconds_takes_no_time(self):
        verdict = judged(row("run_all", "* * * * * *"), late=timedelta(days=365))
        (left_out,) = verdict.skipped
        assert len(verdict.runs) == 100
        assert left_out.number is None, "nobody has counted them"
        assert left_out.last == verdict.runs[0] - timedelta(seconds=1)


class TestZones:
    def test_that_of_the_schedule(self):
        madrid = row(schedule="0 13 * * *", timezone="Europe/Madrid")
        assert judged(madrid, late=MINUTE).next_run_at == NOON + timedelta(days=1)

    def test_or_of_the_project(self, settings):
        settings.TIME_ZONE = "Asia/Tokyo"
        tokyo = row(schedule="0 21 * * *")
        assert judged(tokyo, late=MINUTE).next_run_at == NOON + timedelta(days=1)

    def test_an_hour_that_is_left_out_is_not_missed(self):
        shift = datetime(2026, 3, 29, 1, tzinfo=UTC)
        berlin = row(
            schedule="30 2 * * *",
            timezone="Europe/Berlin",
            next_run_at=shift - timedelta(hours=23, minutes=30),
        )
        verdict = decide(berlin, now=shift - HOUR, grace=MINUTE)
        assert verdict.next_run_at == shift


@pytest.mark.parametrize("changes", [{"next_run_at": None}, {"schedule": "whenever"}])
def test_nonsense_is_told(changes):
    with pytest.raises(ValueError, match=r"no schedule|no cursor"):
        judged(row(**changes), late=MINUTE)
