"""Installing: the table says what the code declares, and cursors are kept."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from robust_queue import recurrence
from robust_queue.arguments import load_call
from robust_queue.lifecycle import install as lifecycle_install
from robust_queue.lifecycle.install import install, reaffirm, recurrences_of
from robust_queue.lifecycle.recur import next_instant
from robust_queue.models import RecurringExecution, RecurringTask
from robust_queue.recurrence import Recurrence
from robust_queue.schedules import Schedule
from tests.support.threads import in_threads, started, uncommitted
from tests.testapp import recurring_tasks
from tests.testapp.recurring_tasks import ballerina, countdown_greeting, greet

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

MORNING = datetime(2026, 1, 1, 6, tzinfo=UTC)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def recurrence_of(task=greet, *, key="k", schedule="0 12 * * *", **options):
    options = {"args": (), "kwargs": {}, "place": "here:1", **options}
    if task is greet and not options["args"]:
        options["args"] = ("Alice",)
    return Recurrence(key=key, task=task, schedule=Schedule(schedule), **options)


def put(*recurrences, now=MORNING):
    install("default", recurrences, now=now)


def row(key="k"):
    return RecurringTask.objects.get(key=key)


class TestAdded:
    def test_a_declaration_becomes_a_row(self):
        put(
            recurrence_of(
                countdown_greeting,
                args=(10, 5),
                kwargs={"name": "Sahur"},
                queue_name="urgent",
                priority=7,
            )
        )
        found = row()
        assert found.task_path == countdown_greeting.module_path
        assert found.schedule == "0 12 * * *"
        assert load_call(found.arguments) == ([10, 5], {"name": "Sahur"})
        assert (found.queue_name, found.priority) == ("urgent", 7)
        assert (found.static, found.enabled) == (True, True)
        assert found.next_run_at == NOON

    def test_an_unset_queue_and_priority_stay_unset(self):
        put(recurrence_of())
        assert (row().queue_name, row().priority) == ("", None)

    def test_the_clock_is_that_of_the_project(self, settings):
        settings.TIME_ZONE = "Europe/Berlin"
        put(recurrence_of())
        assert row().next_run_at == NOON - timedelta(hours=1)

    def test_not_that_of_whoever_happens_to_be_active(self):
        with timezone.override("Asia/Tokyo"):
            put(recurrence_of())
        assert row().next_run_at == NOON

    def test_a_project_without_time_zones(self, settings):
        settings.USE_TZ = False
        settings.TIME_ZONE = "Europe/Berlin"
        put(recurrence_of(), now=MORNING.replace(tzinfo=None))
        assert row().next_run_at == NOON.replace(tzinfo=None)


class TestInstalledAgain:
    def test_nothing_is_written_but_that_it_is_declared(self):
        put(recurrence_of())
        before = row().updated_at
        later = NOON + timedelta(hours=1)
        put(recurrence_of(), now=later)
        assert row().updated_at == before
        assert row().declared_at == later

    def test_the_cursor_stays_although_its_instant_has_passed(self):
        put(recurrence_of())
        put(recurrence_of(args=("Bob",), priority=3), now=NOON + timedelta(hours=1))
        assert row().next_run_at == NOON
        assert load_call(row().arguments) == (["Bob"], {})
        assert row().priority == 3

    def test_another_schedule_counts_from_now(self):
        put(recurrence_of())
        now = NOON + timedelta(hours=1)
        put(recurrence_of(schedule="30 * * * *"), now=now)
        assert row().schedule == "30 * * * *"
        assert row().next_run_at == now + timedelta(minutes=30)
        (left_out,) = RecurringExecution.objects.all()
        assert (left_out.run_at, left_out.reason) == (NOON, "rescheduled")

    def test_another_task(self):
        put(recurrence_of())
        put(recurrence_of(ballerina))
        assert row().task_path == ballerina.module_path

    def test_what_an_operator_disabled_stays_disabled(self):
        put(recurrence_of())
        RecurringTask.objects.update(enabled=False)
        put(recurrence_of(schedule="@daily"))
        assert row().enabled is False

    def test_a_lost_cursor_is_found_again(self):
        put(recurrence_of())
        RecurringTask.objects.update(next_run_at=None)
        put(recurrence_of())
        assert row().next_run_at == NOON


class TestRunTime:
    def test_what_was_made_at_run_time_is_left_alone(self):
        put(recurrence_of())
        RecurringTask.objects.update(static=False)
        put()
        assert row().static is False

    def test_also_if_its_key_is_declared(self, caplog):
        put(recurrence_of())
        RecurringTask.objects.update(static=False)
        put(recurrence_of(schedule="@daily"))
        assert row().schedule == "0 12 * * *"
        assert "'k' of here:1 is not installed" in caplog.text


class TestSeveralSchedulers:
    def test_all_at_once(self):
        wanted = [recurrence_of(key=f"k{n}") for n in range(20)]
        for recurrences in (wanted[:10], wanted[5:], wanted):
            in_threads([lambda each=recurrences: put(*each)] * 4)
            keys = set(RecurringTask.objects.values_list("key", flat=True))
            assert keys >= {each.key for each in recurrences}
        assert RecurringTask.objects.count() == 20

    def test_one_that_waits_for_another_goes_on(self, row_locks):
        with uncommitted(put, recurrence_of(key="a"), recurrence_of(key="b")):
            second = started(put, recurrence_of(key="b"), recurrence_of(key="c"))
        second.result(30)
        # The second has begun while the rows of the first were not to be seen yet.
        keys = set(RecurringTask.objects.values_list("key", flat=True))
        assert keys >= {"b", "c"}

    def test_who_comes_second_does_not_set_a_cursor_back(self):
        put(recurrence_of())
        changed, stale = recurrence_of(schedule="@hourly"), row()
        put(changed)
        RecurringTask.objects.update(next_run_at=NOON)
        lifecycle_install._update("default", stale, changed, MORNING)
        assert row().next_run_at == NOON


class TestWhatBelongsWhere:
    @pytest.fixture(autouse=True)
    def only_ours(self, monkeypatch):
        ours = [
            each
            for each in recurrence._declared
            if each.place.startswith(recurring_tasks.__name__)
        ]
        monkeypatch.setattr(recurrence, "_declared", ours)

    def keys(self, database):
        return {each.key for each in recurrences_of(database)}

    def test_where_the_backend_keeps_its_jobs(self):
        assert self.keys("other") == {"elsewhere"}
        assert "greet_bob" in self.keys("default")

    def test_tasks_of_other_backends_belong_to_the_first_queue(self, settings):
        assert "immediate" in self.keys("default")
        tasks = dict(settings.TASKS)
        settings.TASKS = {"other": tasks.pop("other"), **tasks}
        assert self.keys("other") == {"elsewhere", "immediate"}

    def test_each_is_installed_in_its_own(self):
        for database in ("default", "other"):
            install(database, recurrences_of(database), now=MORNING)
        assert RecurringTask.objects.using("other").get().key == "elsewhere"
        assert next_instant("other") == MORNING + timedelta(hours=1)
        assert RecurringTask.objects.using("default").count() == 7


class TestWhatNobodyDeclares:
    """Releases overlap: what one does not know another one may."""

    def test_is_not_removed_at_once(self):
        put(recurrence_of(key="a"), recurrence_of(key="b"))
        put(recurrence_of(key="b"))
        assert (row("a").retired_at, row("a").next_run_at) == (None, NOON)

    def test_while_another_one_declares_it_it_stays(self, real_time):
        put(recurrence_of(key="a"), now=real_time)
        for minutes in range(0, 180, 4):
            now = real_time + timedelta(minutes=minutes)
            reaffirm("default", [recurrence_of(key="a")], now=now)
            reaffirm("default", [recurrence_of(key="b")], now=now)
        assert {row("a").retired_at, row("b").retired_at} == {None}

    def test_is_orphaned_after_minutes_and_retired_after_an_hour(
        self, real_time, caplog
    ):
        put(recurrence_of(key="a"), now=real_time - timedelta(minutes=30))
        reaffirm("default", [], now=real_time)
        assert row("a").state == "orphaned"
        assert row("a").next_run_at is not None
        reaffirm("default", [], now=real_time + timedelta(minutes=31))
        assert row("a").state == "retired"
        assert next_instant("default") is None
        assert "'a' is retired" in caplog.text

    def test_one_that_is_declared_again_counts_from_now(self, real_time):
        put(recurrence_of(key="a"), now=real_time - timedelta(days=2))
        reaffirm("default", [], now=real_time)
        assert row("a").state == "retired"
        put(recurrence_of(key="a"), now=real_time)
        assert row("a").state == "active"
        assert row("a").next_run_at > real_time
        (left_out,) = RecurringExecution.objects.all()
        assert (left_out.reason, left_out.skipped) == ("retired", 2)

    def test_is_gone_when_its_history_is(self, real_time):
        put(recurrence_of(key="a"), now=real_time - timedelta(days=2))
        reaffirm("default", [], now=real_time)
        reaffirm("default", [], now=real_time + timedelta(days=29))
        assert row("a").state == "retired"
        reaffirm("default", [], now=real_time + timedelta(days=31))
        assert not RecurringTask.objects.exists()

    def test_one_of_a_release_that_did_not_say_so_has_its_time_too(self, real_time):
        put(recurrence_of(key="a"), now=real_time)
        RecurringTask.objects.update(declared_at=None)
        reaffirm("default", [], now=real_time)
        assert row("a").declared_at == real_time

    @pytest.fixture
    def real_time(self):
        """Whether somebody is silent is told by the clock of whoever looks."""
        return timezone.now()


class TestTwoThatDisagree:
    mine, other = recurrence_of(), recurrence_of(schedule="@hourly")

    def test_who_starts_last_has_its_way(self):
        put(self.mine)
        put(self.other)
        assert row().schedule == "@hourly"

    def test_while_both_run_nothing_is_changed_any_more(self):
        put(self.mine)
        put(self.other)
        for minutes in range(1, 60):
            now = MORNING + timedelta(minutes=minutes)
            reaffirm("default", [self.mine], now=now)
            reaffirm("default", [self.other], now=now)
        assert row().schedule == "@hourly"

    def test_when_one_falls_silent_the_other_has_its_way(self):
        put(self.mine)
        put(self.other)
        reaffirm("default", [self.mine], now=MORNING + timedelta(minutes=4))
        assert row().schedule == "@hourly"
        reaffirm("default", [self.mine], now=MORNING + timedelta(minutes=6))
        assert row().schedule == "0 12 * * *"


class TestEnabled:
    def test_as_declared(self):
        put(recurrence_of(enabled=False), now=timezone.now())
        assert (row().enabled, row().state) == (False, "paused")

    def test_a_change_of_the_declaration_counts(self):
        put(recurrence_of())
        put(recurrence_of(enabled=False))
        assert row().enabled is False

    def test_what_has_passed_meanwhile_is_recorded(self):
        put(recurrence_of(enabled=False))
        put(recurrence_of(), now=NOON + timedelta(days=2))
        assert row().next_run_at == NOON + timedelta(days=3)
        left_out = RecurringExecution.objects.get()
        assert (left_out.run_at, left_out.skipped) == (NOON, 3)
        assert (left_out.outcome, left_out.reason) == ("skipped", "disabled")

    def test_else_the_word_of_an_operator_does(self):
        put(recurrence_of(enabled=False))
        RecurringTask.objects.update(enabled=True)
        put(recurrence_of(enabled=False, priority=3))
        assert row().enabled is True


def test_every_option_becomes_a_column():
    put(
        recurrence_of(
            timezone="Asia/Tokyo",
            description="Good morning",
            on_missed="run_all",
            missed_limit=7,
            overlap="queue",
            jitter=90,
        )
    )
    found = row()
    assert found.next_run_at == datetime(2026, 1, 2, 3, tzinfo=UTC)
    assert (found.timezone, found.description) == ("Asia/Tokyo", "Good morning")
    assert (found.on_missed, found.missed_limit) == ("run_all", 7)
    assert (found.overlap, found.jitter) == ("queue", 90)
    put(recurrence_of(timezone="Asia/Tokyo"))
    assert (row().overlap, row().jitter) == ("allow", 0)


def test_another_zone_is_another_time():
    put(recurrence_of())
    put(recurrence_of(timezone="Europe/Madrid"))
    assert row().next_run_at == NOON - timedelta(hours=1)


def test_a_row_that_is_gone_is_put_back(db):
    put(recurrence_of(key="a"), recurrence_of(key="b"))
    RecurringTask.objects.filter(key="a").update(next_run_at=NOON)
    RecurringTask.objects.filter(key="b").delete()
    reaffirm("default", [recurrence_of(key="a"), recurrence_of(key="b")], now=MORNING)
    assert set(RecurringTask.objects.values_list("key", flat=True)) == {"a", "b"}
    assert RecurringTask.objects.get(key="a").next_run_at == NOON, "left alone"
