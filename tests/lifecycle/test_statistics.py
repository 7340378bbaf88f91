"""Statistics: what is read from the rollups of many processes."""

import io
import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import uuid4

import pytest
from django.core.management import call_command

from robust_queue.lifecycle.durations import Durations, step_of
from robust_queue.lifecycle.statistics import PERIODS, history, sparklines
from robust_queue.models import Rollup
from robust_queue.models.rollups import EVERY_QUEUE
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

MOMENT = datetime(2026, 11, 18, 12, 34, 20, tzinfo=UTC)
NOW = MOMENT.timestamp()
MINUTE = MOMENT.replace(second=0)


def told(at=MINUTE, *, queue=EVERY_QUEUE, span=60, waits=(), runs=(), **facts):
    Rollup.objects.create(
        queue_name=queue,
        span=span,
        at=at,
        process_id=uuid4(),
        waits=text(waits),
        runs=text(runs),
        **facts,
    )


def text(seconds):
    return Durations(step_of(timedelta(seconds=each)) for each in seconds).text


def about(seconds):
    return pytest.approx(seconds, rel=0.2)


class TestHistory:
    @pytest.mark.parametrize(
        ("period", "span", "first", "last"),
        [
            ("hour", 60, "2026-11-18T11:35", "2026-11-18T12:34"),
            ("day", 900, "2026-11-17T12:45", "2026-11-18T12:30"),
            ("week", 3600, "2026-11-11T13:00", "2026-11-18T12:00"),
        ],
    )
    def test_has_a_point_for_each_stretch_of_time(self, period, span, first, last):
        found = history("default", period, now=NOW)
        moments = [each.at for each in found.points]
        assert len(moments) == PERIODS[period].points
        assert f"{moments[0]:%Y-%m-%dT%H:%M}" == first
        assert f"{moments[-1]:%Y-%m-%dT%H:%M}" == last
        steps = {b - a for a, b in pairwise(moments)}
        assert steps == {timedelta(seconds=span)}
        empty = found.points[5]
        assert (empty.finished, empty.failed, empty.depth) == (0, 0, None)
        assert (empty.wait_p50, empty.run_p95, empty.latency) == (None, None, None)

    def test_puts_together_what_several_processes_tell(self):
        told(finished=3, failed=1, runs=[1, 1, 1])
        told(finished=2, failed=0, runs=[60, 60], waits=[0.01])
        told(depth=7, latency=1500)
        told(depth=9, latency=500)
        point = history("default", now=NOW).points[-1]
        assert (point.finished, point.failed, point.depth) == (5, 1, 9)
        assert point.latency == timedelta(seconds=1.5)
        assert point.run_p50.total_seconds() == about(1)
        assert point.run_p95.total_seconds() == about(60)
        assert point.wait_p95.total_seconds() == about(0.01)

    def test_totals(self):
        told(finished=3, runs=[1] * 3, depth=4)
        told(MINUTE - timedelta(minutes=59), finished=20, failed=2, runs=[9] * 20)
        told(MINUTE - timedelta(minutes=60), finished=100)
        told(MINUTE, queue="mail", finished=100)
        told(MINUTE, span=900, finished=100)
        total = history("default", now=NOW).total
        assert (total.finished, total.failed, total.depth) == (23, 2, 4)
        assert total.run_p50.total_seconds() == about(9)

    def test_of_one_queue(self):
        told(finished=3)
        told(queue="mail", finished=2)
        assert history("default", queue_name="mail", now=NOW).total.finished == 2

    def test_says_of_what_there_may_be_more(self):
        found = history("default", now=NOW).points
        assert [each.is_complete for each in found[-3:]] == [True, True, False]
        found = history("default", now=NOW - 10).points
        assert [each.is_complete for each in found[-3:]] == [True, False, False]

    def test_is_one_statement(self):
        with statements() as found:
            history("default", "week")
        assert len(found) == 1

    def test_without_time_zones(self, settings):
        settings.USE_TZ, settings.TIME_ZONE = False, "Europe/Madrid"
        told(MINUTE, finished=3)
        assert history("default", now=NOW).points[-1].finished == 3
        assert sparklines("default", [""], now=NOW)[""][-1].finished == 3


class TestSparklines:
    def test_of_each_queue_in_one_statement(self):
        told(queue="mail", finished=2, failed=1)
        told(queue="mail", finished=3)
        told(queue="mail", depth=4, latency=20)
        told(queue="photos", finished=9)
        told(queue="others", finished=9)
        with statements() as sent:
            found = sparklines("default", ["mail", "photos", "quiet"], now=NOW)
        assert len(sent) == 1
        assert found.keys() == {"mail", "photos", "quiet"}
        assert {len(points) for points in found.values()} == {60}
        last = found["mail"][-1]
        assert (last.finished, last.failed, last.depth) == (5, 1, 4)
        assert last.latency == timedelta(milliseconds=20)
        assert (last.at, last.is_complete) == (MINUTE, False)
        assert sum(each.finished for each in found["photos"]) == 9
        quiet = found["quiet"][0]
        assert (quiet.finished, quiet.depth, quiet.latency) == (0, None, None)


def stats(*words):
    out = io.StringIO()
    call_command("robust_queue", "stats", *words, stdout=out)
    return out.getvalue()


class TestVerb:
    def test_tells_when_something_happened_and_the_whole(self):
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        for age, number in ((5, 1200), (3, 34)):
            at = now - timedelta(minutes=age)
            told(at, finished=number, failed=1, waits=[0.03], runs=[300], depth=8)
        titles, first, second, whole = stats().splitlines()
        assert titles.split()[:3] == ["FROM", "FINISHED", "FAILED"]
        assert first.split()[2:4] == ["1,200", "1"]
        assert second.split()[2:4] == ["34", "1"]
        assert whole.split()[:3] == ["ALL", "1,234", "2"]
        assert "ms" in whole
        assert "min" in whole

    def test_of_one_queue_for_programs(self):
        told(datetime.now(UTC).replace(minute=0, second=0, microsecond=0), span=3600)
        told(
            datetime.now(UTC).replace(minute=0, second=0, microsecond=0),
            span=3600,
            queue="mail",
            finished=7,
            runs=[2],
        )
        found = json.loads(stats("--period", "week", "--queue", "mail", "--json"))
        assert found["period"] == "week"
        assert found["span"] == 3600
        assert found["total"]["finished"] == 7
        assert found["total"]["run_p50"] == about(2)
        assert len(found["points"]) == 168
        assert datetime.fromisoformat(found["points"][0]["at"]).tzinfo

    def test_without_anything_to_tell(self):
        assert stats("--period", "day") == "Nothing is known of the last day.\n"
