"""What might keep a scheduler from all other work for ever, and must not."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import DatabaseError, OperationalError, ProgrammingError, connection
from django.utils import timezone

from robust_queue import Concurrency, RecurringTaskError, schedule_recurring, task
from robust_queue.compat import InvalidTask
from robust_queue.lifecycle import history as lifecycle_history
from robust_queue.lifecycle import recur as lifecycle_recur
from robust_queue.lifecycle.history import complete_history
from robust_queue.lifecycle.install import install, reaffirm
from robust_queue.lifecycle.recur import recur
from robust_queue.lifecycle.remit import Remit
from robust_queue.lifecycle.rerun import rerun
from robust_queue.lifecycle.retry import retry
from robust_queue.lifecycle.timetable import pause, resume
from robust_queue.models import Job, RecurringTask
from robust_queue.processes.scheduler import Scheduler
from robust_queue.testing import drain
from tests.support.recurring import (
    MINUTE,
    NOON,
    declaration,
    due,
    history,
    instants,
    row,
)
from tests.support.statements import statements
from tests.support.threads import started, uncommitted
from tests.testapp.recurring_tasks import elsewhere, greet
from tests.testapp.tasks import explode

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def key_from_nowhere(value):
    with connection.cursor() as cursor:
        cursor.execute("SELECT no_such_column FROM robust_queue_jobs")


@task(concurrency=Concurrency(key=key_from_nowhere))
def broken_key(value):
    pass


class TestQueriesOfTheProject:
    """Keys and arguments are looked up in the transaction of the scheduler."""

    def test_one_that_fails_is_the_business_of_its_task_alone(self):
        due(broken_key, args=(1,))
        due(key="sound", args=(1,))
        assert recur("default", now=NOON) == 1
        assert instants("sound") == [NOON]
        assert history()[0].outcome == "refused"

    def test_an_error_that_seems_to_pass_has_some_minutes(self, monkeypatch):
        due(args=(13,))

        def fail(text):
            raise OperationalError("no such column")

        monkeypatch.setattr("robust_queue.lifecycle.hand_in.load_call", fail)
        with pytest.raises(OperationalError):
            recur("default", now=NOON + MINUTE)
        assert (history(), row().next_run_at) == ([], NOON)
        recur("default", now=NOON + 5 * MINUTE)
        assert history()[-1].outcome == "refused"
        assert "no such column" in history()[-1].reason

    def test_one_that_will_not_pass_has_none(self, monkeypatch):
        due(args=(13,))

        def fail(text):
            raise ProgrammingError("no such column")

        monkeypatch.setattr("robust_queue.lifecycle.hand_in.load_call", fail)
        recur("default", now=NOON)
        assert history()[0].outcome == "refused"


class TestRowsThatSomebodyHasLocked:
    def test_are_not_waited_for_when_they_are_looked_after(self, row_locks):
        made = [declaration(key="a"), declaration(key="b")]
        install("default", made)
        with uncommitted(pause, "default", "a"):
            before = row("b").declared_at
            started(reaffirm, "default", made).result(30)
            assert row("b").declared_at > before
            assert row("a").declared_at == before

    def test_keep_nothing_else_from_being_fired(self, row_locks):
        made = [declaration(key="a"), declaration(key="b", schedule="* * * * * *")]
        scheduler = Scheduler(made, database="default")
        scheduler.turn()
        scheduler._next_inspection = 0.0
        RecurringTask.objects.update(next_run_at=timezone.now() - timedelta(seconds=1))
        with uncommitted(pause, "default", "a"):
            started(scheduler.turn).result(30)
        assert len(instants("b")) == 1


def test_an_inspection_that_fails_is_not_tried_in_every_turn(monkeypatch):
    scheduler = Scheduler([declaration()], database="default")
    scheduler.turn()
    tried = []

    def fail(*args):
        tried.append(args)
        raise DatabaseError("no")

    monkeypatch.setattr("robust_queue.processes.scheduler.reaffirm", fail)
    scheduler._next_inspection = 0.0
    with pytest.raises(DatabaseError):
        scheduler.turn()
    scheduler.turn()
    assert len(tried) == 1


class TestWithoutZones:
    def test_an_hour_that_is_repeated(self, settings):
        settings.USE_TZ = False
        settings.TIME_ZONE = "Europe/Berlin"
        start = datetime.fromisoformat("2026-10-25T01:50")
        due_then = declaration(schedule="*/15 * * * *", on_missed="run_all")
        install("default", [due_then], now=start)
        assert recur("default", now=datetime.fromisoformat("2026-10-25T04:00")) > 1
        assert len(instants()) == len(set(instants()))


@pytest.mark.parametrize(
    "name", ["retire_recurring_tasks_after", "clear_recurring_executions_after"]
)
def test_for_ever_is_a_time_as_well(settings, name):
    settings.ROBUST_QUEUE = {name: timedelta.max}
    now = timezone.now()
    install("default", [declaration(key="gone")], now=now - timedelta(days=50))
    reaffirm("default", [declaration()], now=now)
    reaffirm("default", [declaration()], now=now + timedelta(days=50))
    is_kept = RecurringTask.objects.filter(key="gone").exists()
    assert is_kept


def test_a_cursor_at_the_end_of_the_calendar_stops_nobody_else():
    due()
    RecurringTask.objects.update(next_run_at=datetime(1, 1, 1, tzinfo=UTC))
    due(key="sound")
    recur("default", now=NOON)
    assert instants("sound") == [NOON]


def test_any_error_of_one_is_not_one_of_the_others(monkeypatch):
    due(key="a")
    due(key="b")
    decide = lifecycle_recur.decide

    def stumble(recurring, **options):
        if recurring.key == "a":
            raise RuntimeError("stumbled")
        return decide(recurring, **options)

    monkeypatch.setattr(lifecycle_recur, "decide", stumble)
    with pytest.raises(RuntimeError, match="stumbled"):
        recur("default", now=NOON)
    assert instants("b") == [NOON]


def test_what_is_left_to_others_is_not_looked_at_meanwhile():
    due()
    RecurringTask.objects.update(task_path="tests.testapp.recurring_tasks.new")
    remit = Remit()
    recur("default", now=NOON, remit=remit)
    with statements() as found:
        recur("default", now=NOON + MINUTE, remit=remit)
    assert len([each for each in found if "FOR UPDATE" in each or "WHERE" in each]) <= 1
    recur("default", now=NOON + 5 * MINUTE, remit=remit)
    assert history()[-1].outcome == "refused"


def test_very_many_instants_are_shared_out_among_transactions(monkeypatch):
    monkeypatch.setattr(lifecycle_recur, "MOST_TICKS", 5)
    for n in range(4):
        due(key=f"k{n}", on_missed="run_all")
    assert recur("default", now=NOON + 3 * MINUTE) == 16
    assert all(len(instants(f"k{n}")) == 4 for n in range(4))


class TestHistory:
    """Of two who look at the same run, one writes down what is so."""

    def run_once(self, of=None):
        due(*([of] if of else []))
        recur("default", now=NOON)
        drain()

    def test_a_job_that_is_cleared_meanwhile_is_not_gone(self, row_locks):
        self.run_once()

        def complete():
            return list(complete_history("default"))

        with uncommitted(complete):
            second = started(complete)
        second.result(30)
        assert history()[0].outcome == "succeeded"

    def test_a_retry_meanwhile_is_not_forgotten(self, row_locks):
        self.run_once(explode)
        job_id = history()[0].job_id

        def complete():
            return list(complete_history("default"))

        with uncommitted(complete):
            second = started(retry, "default", job_id)
        assert second.result(30) is True
        assert history()[0].outcome == "enqueued"

    def test_an_end_that_is_known_is_not_overwritten(self, monkeypatch):
        self.run_once()
        read = lifecycle_history._open_behind

        def be_late(*args):
            found = read(*args)
            monkeypatch.undo()
            list(complete_history("default"))
            Job.objects.all().delete()
            return found

        monkeypatch.setattr(lifecycle_history, "_open_behind", be_late)
        list(complete_history("default"))
        assert history()[0].outcome == "succeeded"

    def test_a_rerun_is_the_same_run(self):
        self.run_once(explode)
        list(complete_history("default"))
        result = rerun("default", history()[0].job_id)
        entry = history()[0]
        assert (str(entry.job_id), entry.outcome) == (result.id, "enqueued")


class TestRefusals:
    def test_queueing_what_is_to_be_discarded(self):
        with pytest.raises(ValueError, match="discards"):
            declaration(only_one_at_a_time, overlap="queue")

    def test_the_group_of_turns_is_nobody_elses(self):
        with pytest.raises(InvalidTask, match="must not begin with @"):
            Concurrency(group="@recurring")

    def test_text_that_cannot_be_sent(self):
        with pytest.raises(TypeError, match="description"):
            declaration(description="\ud800")

    def test_a_schedule_that_cannot_be_read_is_not_resumed(self):
        due()
        pause("default", "k")
        RecurringTask.objects.update(timezone="Mars")
        with pytest.raises(RecurringTaskError, match="Mars"):
            resume("default", "k")

    def test_a_path_leads_home_as_its_task_does(self):
        schedule_recurring("k", elsewhere.module_path, schedule="@daily")
        assert RecurringTask.objects.using("other").get().key == "k"


@task(concurrency=Concurrency(key="x", on_conflict="discard"))
def only_one_at_a_time():
    pass


class TestClocksOfHosts:
    """Whether somebody is silent is told by the clock of the database."""

    def test_a_host_that_is_behind_has_its_way_all_the_same(self, monkeypatch):
        mine, other = declaration(), declaration(schedule="@hourly")
        install("default", [other])
        behind = partial(lambda now: now() - timedelta(minutes=30), timezone.now)
        with monkeypatch.context() as patched:
            patched.setattr("robust_queue.lifecycle.install.timezone.now", behind)
            install("default", [mine])
        reaffirm("default", [other])
        assert row().schedule == "* * * * *"

    def test_what_is_retired_and_declared_is_revived_at_once(self):
        install("default", [declaration()])
        RecurringTask.objects.update(retired_at=timezone.now())
        reaffirm("default", [declaration()])
        assert row().state == "active"


def test_a_key_that_is_declared_meanwhile_is_not_taken_over(row_locks):
    with uncommitted(install, "default", [declaration()]):
        second = started(
            schedule_recurring, "k", greet, schedule="@daily", args=["A"], replace=True
        )
    with pytest.raises(RecurringTaskError, match="in code or settings"):
        second.result(30)
    assert row().static is True
