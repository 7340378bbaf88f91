"""Rollups: what is written of tallies and depths, and when it is forgotten."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from robust_queue.identifiers import new_job_id
from robust_queue.lifecycle import depths, rollups, tallies
from robust_queue.lifecycle.durations import Durations
from robust_queue.lifecycle.pause import pause
from robust_queue.lifecycle.rollups import Depth, forget_old, write_depths
from robust_queue.lifecycle.sweep import Sweeps
from robust_queue.lifecycle.tallies import Entry, Tallies, Tally, Window, windows
from robust_queue.models import Job, ReadyExecution, Rollup
from robust_queue.models.rollups import EVERY_QUEUE
from robust_queue.stores import measuring
from tests.support import backlog
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

NOON = int(datetime(2026, 11, 18, 12, tzinfo=UTC).timestamp())
MOMENT = datetime(2026, 11, 18, 12, tzinfo=UTC)


def tally(finished=1):
    return Tally(finished, 2, Durations({40: finished}), Durations({20: 1, 21: 2}))


def write(found, process_id):
    rollups.write_tallies("default", process_id, found.unwritten)
    found.note_written(found.unwritten)


class TestTallies:
    def test_belong_to_a_minute_a_quarter_of_an_hour_and_an_hour(self):
        moment = NOON + 17 * 60 + 3.5
        assert windows(moment) == [
            Window(60, NOON + 17 * 60),
            Window(900, NOON + 15 * 60),
            Window(3600, NOON),
        ]

    def test_are_written_with_all_that_was_said_before(self):
        found, process = Tallies(), uuid4()
        found.add(NOON, {"mail": tally(3)})
        write(found, process)
        found.add(NOON + 60, {"mail": tally(4)})
        with statements() as sent:
            write(found, process)
        assert len(sent.changes) == 1
        rows = Rollup.objects.filter(queue_name="mail").order_by("span", "at")
        assert [(row.span, row.finished, row.failed) for row in rows] == [
            (60, 3, 2),
            (60, 4, 2),
            (900, 7, 4),
            (3600, 7, 4),
        ]
        assert rows[0].at == MOMENT
        assert rows[3].waits == "40,7"
        assert rows[3].runs == "20,2,21,4"

    def test_a_reply_that_was_lost_counts_nothing_twice(self):
        found, process = Tallies(), uuid4()
        found.add(NOON, {"mail": tally(3)})
        for _ in range(2):
            rollups.write_tallies("default", process, found.unwritten)
        rows = Rollup.objects.filter(queue_name="mail")
        assert {(row.span, row.finished) for row in rows} == {
            (60, 3),
            (900, 3),
            (3600, 3),
        }
        assert rows.count() == 3

    def test_only_what_has_changed_is_written_again(self):
        found = Tallies()
        found.add(NOON, {"mail": tally(), "other": tally()})
        found.note_written(found.unwritten)
        found.add(NOON + 900, {"other": tally()})
        assert {(each.window.at, each.queue_name) for each in found.unwritten} == {
            (NOON + 900, "other"),
            (NOON, "other"),
        }

    def test_queues_beyond_the_most_are_in_the_total_only(self, monkeypatch):
        monkeypatch.setattr(tallies, "MOST_QUEUES", 2)
        found = Tallies()
        for name in "abc":
            found.add(NOON, {name: tally(), EVERY_QUEUE: tally()})
        minute = windows(NOON)[0]
        told = {
            e.queue_name: t for e, t in found.unwritten.items() if e.window == minute
        }
        assert told.keys() == {"a", "b", EVERY_QUEUE}
        assert told[EVERY_QUEUE].finished == 3

    def test_what_is_over_is_forgotten_once_it_is_written(self):
        found = Tallies()
        found.add(NOON, {"mail": tally()})
        found.forget(NOON + 60)
        assert len(found.unwritten) == 3
        found.note_written(found.unwritten)
        found.forget(NOON + 60)
        assert found._pages.keys() == {Window(900, NOON), Window(3600, NOON)}

    def test_what_cannot_be_written_is_not_kept_forever(self):
        found = Tallies()
        found.add(NOON, {"mail": tally()})
        found.forget(NOON + 60 + tallies.LATEST)
        assert {each.window.span for each in found.unwritten} == {900, 3600}


class TestForgetting:
    def rows(self, *spans_and_ages):
        Rollup.objects.bulk_create(
            Rollup(span=span, at=MOMENT - timedelta(hours=hours), process_id=uuid4())
            for span, hours in spans_and_ages
        )

    def test_each_span_after_its_time(self):
        kept = [(60, 2), (900, 48), (3600, 192)]
        self.rows(*kept, *[(span, hours + 1) for span, hours in kept])
        list(forget_old("default", MOMENT))
        found = Rollup.objects.values_list("span", "at")
        assert set(found) == {(span, MOMENT - timedelta(hours=h)) for span, h in kept}

    def test_in_small_batches(self, monkeypatch):
        monkeypatch.setattr(rollups, "BATCH_SIZE", 2)
        self.rows(*[(60, 3)] * 5)
        steps = forget_old("default", MOMENT)
        next(steps)
        assert Rollup.objects.count() == 3
        assert len(list(steps)) == 2
        assert not Rollup.objects.exists()

    def test_a_sweep_sees_to_it_with_one_look(self):
        self.rows((60, 24 * 365))
        for _ in Sweeps("default").sweep():
            pass
        assert not Rollup.objects.exists()
        with statements() as found:
            list(forget_old("default", MOMENT))
        assert len(found) == 1


class TestDepths:
    def ready(self, queue, *, ago, priority=0):
        since = datetime.now(UTC) - timedelta(seconds=ago)
        job = Job.objects.create(
            id=new_job_id(),
            task_path="t",
            backend="default",
            queue_name=queue,
            arguments="{}",
            enqueued_at=since,
        )
        ReadyExecution.objects.create(
            job=job, queue_name=queue, priority=priority, created_at=since
        )

    def test_of_each_queue_and_of_all(self):
        self.ready("mail", ago=5)
        self.ready("mail", ago=3)
        self.ready("photos", ago=9)
        found = depths.depths("default")
        assert {name: each.ready for name, each in found.items()} == {
            "": 3,
            "mail": 2,
            "photos": 1,
        }
        seconds = {name: each.latency // 1000 for name, each in found.items()}
        assert seconds == {"": 9, "mail": 5, "photos": 9}

    def test_paused_queues_are_as_deep_as_others(self):
        self.ready("mail", ago=5)
        pause("default", "mail")
        pause("default", "empty")
        assert depths.depths("default").keys() == {"", "mail"}

    def test_whoever_waits_behind_all_others_is_looked_at(self, monkeypatch):
        monkeypatch.setattr(measuring, "GOING_NEXT", 1)
        self.ready("mail", ago=1, priority=-10)
        self.ready("mail", ago=50, priority=10)
        self.ready("mail", ago=40, priority=10)
        assert depths.depths("default")["mail"].latency // 1000 == 50

    def test_counting_stops_at_some_point(self, monkeypatch):
        monkeypatch.setattr(depths, "MOST_COUNTED", 20)
        backlog.fill(50)
        assert depths.depths("default")[""].ready == 20

    def test_so_many_queues_are_told_apart(self, monkeypatch):
        monkeypatch.setattr(depths, "MOST_QUEUES", 2)
        backlog.fill(50)
        assert depths.depths("default").keys() == {"", "queue_0", "queue_1"}

    def test_no_queue_is_left_out_where_counting_stops(self, monkeypatch):
        monkeypatch.setattr(depths, "MOST_COUNTED", 10)
        backlog.fill(50, queue="first")
        self.ready("second", ago=5)
        found = depths.depths("default")
        assert found["second"].ready == 1
        assert found["second"].latency // 1000 == 5
        assert 5 <= found["first"].ready <= 10

    def test_statements(self, monkeypatch):
        with statements() as found:
            assert depths.depths("default") == {}
        assert len(found) == 2
        backlog.fill(50)
        with statements() as found:
            depths.depths("default")
        assert len(found) == 3
        monkeypatch.setattr(measuring, "QUEUES_AT_ONCE", 2)
        assert len(depths.depths("default")) == 6, "of three statements"

    def test_the_most_is_written_in_one_statement(self):
        process, entry = uuid4(), Entry(Window(60, NOON), "mail")
        for depth in (Depth(3, 1500), Depth(0, 0)):
            with statements() as sent:
                write_depths("default", process, {entry: depth})
            assert len(sent.changes) == 1
        row = Rollup.objects.get()
        assert (row.depth, row.latency, row.finished) == (0, 0, 0)
