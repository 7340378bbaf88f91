"""Clearing: what is old enough goes, and everything else stays."""

import logging
from datetime import timedelta
from uuid import uuid4

import pytest
import time_machine
from django.utils import timezone

from robust_queue import registry
from robust_queue.lifecycle import clear as lifecycle_clear
from robust_queue.lifecycle import instants
from robust_queue.lifecycle import sweep as lifecycle_sweep
from robust_queue.lifecycle.clear import Choice, batches, clear
from robust_queue.lifecycle.keep import Rule, rules
from robust_queue.lifecycle.sweep import Sweeps
from robust_queue.models import FinishedExecution, Job, RecurringExecution
from robust_queue.policies import Kind
from robust_queue.stores import store_for
from tests.support import rows
from tests.support.ended import DAY, ended
from tests.support.invariants import states
from tests.support.statements import statements
from tests.support.threads import uncommitted
from tests.testapp import kept_tasks
from tests.testapp.tasks import note

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
LONG = kept_tasks.keep_for_long.module_path
HARDLY = kept_tasks.keep_hardly.module_path
WANTED = [kind.value for kind in Kind if kind.is_wanted]
UNWANTED = [kind.value for kind in Kind if not kind.is_wanted]


def sweep(sweeps=None):
    """Sweep once; tell how many steps it took."""
    return sum(1 for _ in (sweeps or Sweeps("default")).sweep())


class TestHowLong:
    def test_finished_jobs_by_the_setting(self, settings):
        settings.ROBUST_QUEUE = {"clear_finished_jobs_after": HOUR}
        ended("finished", ago=2 * HOUR, count=3)
        (young,) = ended("finished", ago=HOUR / 2)
        assert clear("default", "finished") == 3
        assert states() == {young: "finished"}

    @pytest.mark.parametrize("kind", UNWANTED)
    def test_failed_jobs_by_their_own_setting(self, kind, settings):
        ended("failed", ago=900 * DAY, kind=kind)
        assert clear("default", "failed") == 0
        settings.ROBUST_QUEUE = {"clear_failed_jobs_after": 30 * DAY}
        (young,) = ended("failed", ago=29 * DAY, kind=kind)
        assert clear("default", "failed") == 1
        assert states() == {young: "failed"}

    @pytest.mark.parametrize("kind", WANTED)
    def test_what_somebody_has_wanted_to_fail_goes_like_what_has_finished(self, kind):
        ended("failed", ago=2 * DAY, kind=kind)
        (young,) = ended("failed", ago=DAY / 2, kind=kind)
        assert clear("default", "failed") == 1
        assert states() == {young: "failed"}

    def test_a_kind_of_a_later_version_is_none_that_was_wanted(self):
        ended("failed", ago=2 * DAY, kind="vanished")
        assert clear("default", "failed") == 0

    def test_a_task_may_keep_its_results_for_longer_or_shorter(self):
        (kept,) = ended("finished", ago=2 * DAY, task_path=LONG)
        ended("finished", ago=2 * DAY)
        ended("finished", ago=366 * DAY, task_path=LONG)
        ended("finished", ago=HOUR, task_path=HARDLY)
        (young,) = ended("finished", ago=MINUTE, task_path=HARDLY)
        assert clear("default", "finished") == 3
        assert set(states()) == {kept, young}

    @pytest.mark.parametrize("kind", ["", "cancelled"])
    def test_a_task_may_say_how_long_its_failures_are_kept(self, kind):
        (kept,) = ended("failed", ago=6 * DAY, task_path=LONG, kind=kind)
        ended("failed", ago=8 * DAY, task_path=LONG, kind=kind)
        ended("failed", ago=timedelta(0), task_path=HARDLY, kind=kind)
        assert clear("default", "failed") == 2
        assert set(states()) == {kept}

    def test_a_queue_and_an_alias_may_say_it_too(self, settings):
        settings.ROBUST_QUEUE = {
            "queue_defaults": {"audit": {"keep_result": 30 * DAY}},
            "task_defaults": {"keep_failure": 3 * DAY},
        }
        (kept,) = ended("finished", ago=20 * DAY, queue_name="audit")
        (task_wins,) = ended(
            "finished", ago=40 * DAY, queue_name="audit", task_path=LONG
        )
        ended("finished", ago=40 * DAY, queue_name="audit")
        ended("failed", ago=4 * DAY)
        (young,) = ended("failed", ago=2 * DAY, queue_name="audit")
        assert clear("default", "finished") == 1
        assert clear("default", "failed") == 1
        assert set(states()) == {kept, task_wins, young}

    def test_a_task_that_is_gone_goes_by_the_setting(self):
        ended("finished", ago=2 * DAY, task_path="shop.tasks.removed")
        assert clear("default", "finished") == 1

    def test_what_is_kept_equally_long_is_one_rule(self, settings):
        settings.ROBUST_QUEUE = {
            "queue_defaults": {"a": {"keep_result": DAY}, "b": {"keep_result": DAY}}
        }
        found = rules("default")
        assert len(found) == len(set(found))
        assert found.count(Rule("finished", DAY)) == 1
        assert [rule.age for rule in found] == sorted(rule.age for rule in found)

    def test_a_time_that_no_calendar_reaches_is_for_ever(self, settings):
        settings.ROBUST_QUEUE = {"clear_finished_jobs_after": timedelta.max}
        (kept,) = ended("finished", ago=900 * DAY)
        assert clear("default", "finished") == 0
        sweep()
        assert set(states()) == {kept}

    def test_jobs_that_have_not_ended_stay_however_old_they_are(self):
        waiting = [rows.ready(), rows.scheduled(), rows.claimed(), rows.blocked()]
        Job.objects.update(enqueued_at=timezone.now() - 900 * DAY)
        sweep()
        assert len(states()) == len(waiting)


class TestByChoice:
    def test_a_moment_goes_before_what_tasks_say(self):
        ended("finished", ago=2 * HOUR, task_path=LONG)
        (young,) = ended("finished", ago=MINUTE, task_path=HARDLY)
        moment = timezone.now() - HOUR
        assert Job.objects.clear_finished_in_batches(finished_before=moment) == 1
        assert set(states()) == {young}

    def test_without_a_moment_each_when_its_time_is_up(self):
        (kept,) = ended("finished", ago=2 * DAY, task_path=LONG)
        ended("finished", ago=2 * DAY, count=3)
        assert Job.objects.clear_finished_in_batches(batch_size=2) == 3
        assert set(states()) == {kept}

    @pytest.mark.parametrize("task", [note, note.module_path])
    def test_of_one_task(self, task):
        ended("finished", ago=2 * DAY)
        (other,) = ended("finished", ago=2 * DAY, task_path="a.b")
        assert Job.objects.clear_finished_in_batches(task=task) == 1
        assert set(states()) == {other}

    def test_failures_by_task_queue_and_kind(self):
        old = {"ago": 2 * DAY}
        stays = [
            *ended("failed", **old, task_path="a.b", queue_name="q", kind="crashed"),
            *ended("failed", **old, queue_name="other", kind="crashed"),
            *ended("failed", **old, queue_name="q", kind="timed_out"),
            *ended("finished", **old, queue_name="q"),
        ]
        ended("failed", **old, queue_name="q", kind="crashed")
        cleared = Job.objects.clear_failed_in_batches(
            finished_before=timezone.now(), task=note, queue="q", kind=Kind.CRASHED
        )
        assert cleared == 1
        assert set(states()) == set(stays)

    def test_finished_jobs_of_one_queue(self):
        ended("finished", ago=2 * DAY, queue_name="q")
        (other,) = ended("finished", ago=2 * DAY)
        assert Job.objects.clear_finished_in_batches(queue="q") == 1
        assert set(states()) == {other}

    def test_a_pause_between_batches(self, monkeypatch):
        ended("finished", ago=2 * DAY, count=5)
        pauses = []
        monkeypatch.setattr(lifecycle_clear.time, "sleep", pauses.append)
        cleared = Job.objects.clear_finished_in_batches(2, sleep_between_batches=0.3)
        assert (cleared, pauses) == (5, [0.3, 0.3, 0.3])

    @pytest.mark.django_db(databases=["default", "other"])
    def test_in_another_database(self):
        ended("finished", ago=2 * DAY)
        manager = Job.objects.db_manager("other")
        assert manager.clear_finished_in_batches() == 0
        assert len(states()) == 1

    def test_a_batch_has_at_least_one_job(self):
        with pytest.raises(ValueError, match="at least one"):
            Job.objects.clear_finished_in_batches(batch_size=0)

    def test_a_filter_before_it_is_refused_rather_than_overlooked(self):
        assert not hasattr(
            Job.objects.filter(queue_name="q"), "clear_failed_in_batches"
        )

    def test_a_rehearsal_tells_and_deletes_nothing(self):
        ids = ended("finished", ago=2 * DAY, count=5)
        found = batches("default", "finished", size=2, is_rehearsal=True)
        assert sum(len(batch.cleared) for batch in found) == 5
        assert set(states()) == set(ids)

    def test_naive_moments_are_those_of_the_current_zone(self):
        ended("finished", ago=2 * DAY)
        moment = timezone.make_naive(timezone.now())
        assert clear("default", "finished", Choice(finished_before=moment)) == 1


class TestSweeps:
    def test_everything_that_is_old_enough(self, caplog):
        caplog.set_level(logging.INFO, "robust_queue")
        ended("finished", ago=2 * DAY, count=3)
        ended("failed", ago=2 * DAY, kind="expired")
        (kept,) = ended("failed", ago=2 * DAY)
        sweep()
        assert set(states()) == {kept}
        assert "Cleared 4 jobs" in caplog.text

    def test_nothing_to_do_is_not_told(self, caplog):
        caplog.set_level(logging.INFO, "robust_queue")
        assert sweep() == 0
        assert caplog.text == ""

    def test_what_is_kept_is_looked_at_once(self, small_batches):
        ended("finished", ago=20 * DAY, count=30, task_path=LONG)
        ended("failed", ago=20 * DAY, count=30)
        sweeps = Sweeps("default")
        assert sweep(sweeps) >= 6
        with statements() as found:
            assert sweep(sweeps) == 0
        # One look for each rule, and one each at instants, at runs that are open and
        # at rollups.
        assert len(found) == len(rules("default")) + 3

    def test_what_comes_of_age_later_is_found(self, settings):
        sweeps = Sweeps("default")
        (kept,) = ended("finished", ago=DAY / 2, task_path=LONG)
        (young,) = ended("finished", ago=DAY / 2)
        sweep(sweeps)
        assert set(states()) == {kept, young}
        with _later(HOUR * 13):
            sweep(sweeps)
        assert set(states()) == {kept}

    def test_an_outcome_that_was_written_down_late_is_found(self):
        sweeps = Sweeps("default")
        sweep(sweeps)
        # Behind the sweep, although it ended before it.
        ended("failed", ago=MINUTE, task_path=HARDLY)
        with _later(lifecycle_sweep.LATENESS):
            sweep(sweeps)
        assert states() == {}

    def test_one_that_was_written_down_very_late_is_found_within_a_day(self):
        sweeps = Sweeps("default")
        sweep(sweeps)
        (late,) = ended("finished", ago=3 * DAY)
        sweep(sweeps)
        assert set(states()) == {late}
        with _later(lifecycle_sweep.MEMORY):
            sweep(sweeps)
        assert states() == {}

    def test_a_sweep_that_was_broken_off_goes_on_where_it_was(self, small_batches):
        ended("finished", ago=20 * DAY, count=30, task_path=LONG)
        (old,) = ended("finished", ago=2 * DAY)
        sweeps = Sweeps("default")
        steps = sweeps.sweep()
        for _ in range(5):
            next(steps)
        with statements() as whole:
            sweep()
        ended("finished", ago=2 * DAY)
        with statements() as rest:
            sweep(sweeps)
        assert old not in states()
        assert len(rest) < len(whole)

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.usefixtures("row_locks")
    def test_what_somebody_else_had_locked_is_met_again(self):
        first, second = ended("finished", ago=2 * DAY, count=2)
        sweeps = Sweeps("default")
        with uncommitted(_lock, first):
            sweep(sweeps)
            assert set(states()) == {first}
        sweep(sweeps)
        assert states() == {}
        assert second

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.usefixtures("row_locks")
    def test_one_that_stays_locked_does_not_hold_the_others_up(self, small_batches):
        (locked,) = ended("finished", ago=2 * DAY)
        ended("finished", ago=2 * DAY, count=9, task_path=LONG)
        ended("finished", ago=2 * DAY, count=30)
        with uncommitted(_lock, locked):
            sweep()
            assert len(states()) == 1 + 9

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.usefixtures("row_locks")
    def test_two_at_once_leave_nothing_behind(self, small_batches):
        ended("finished", ago=2 * DAY, count=50)
        mine, theirs = Sweeps("default"), Sweeps("default")
        for _ in zip(mine.sweep(), theirs.sweep(), strict=False):
            pass
        for each in (mine, theirs):
            sweep(each)
        assert states() == {}

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.usefixtures("row_locks")
    def test_who_comes_second_leaves_it_to_the_first(self, small_batches, monkeypatch):
        monkeypatch.setattr(registry, "discover", dict)  # all are kept equally long
        ids = ended("finished", ago=2 * DAY, count=50)
        clear_them = store_for("default").clear
        with uncommitted(clear_them, "finished", ids, before=timezone.now()):
            assert sweep() == 1, "one look is enough"
        assert states() == {}


class TestInstants:
    def test_they_go_when_they_are_old_and_their_jobs_are_gone(self):
        old = timezone.now() - 31 * DAY
        (job_id,) = ended("finished", ago=DAY / 2)
        living = rows.recurring_execution(job_id=job_id, run_at=old)
        rows.recurring_execution(job_id=uuid4(), run_at=old)
        rows.recurring_execution(job_id=None, run_at=old)
        RecurringExecution.objects.update(created_at=old)
        young = rows.recurring_execution(job_id=uuid4())
        sweep()
        assert set(RecurringExecution.objects.all()) == {living, young}

    def test_as_early_as_the_settings_say_but_not_before_it_is_safe(self, settings):
        settings.ROBUST_QUEUE = {"clear_recurring_executions_after": 0}
        for days in (1, 3):
            made = rows.recurring_execution(job_id=None)
            since = timezone.now() - days * DAY
            RecurringExecution.objects.filter(pk=made.pk).update(created_at=since)
        sweep()
        assert RecurringExecution.objects.count() == 1

    def test_in_batches_of_two_statements_and_a_look(self, monkeypatch):
        monkeypatch.setattr(instants, "BATCH_SIZE", 4)
        for _ in range(9):
            rows.recurring_execution()
        old = timezone.now() - 31 * DAY
        RecurringExecution.objects.update(created_at=old, outcome="succeeded")
        with statements() as found:
            assert sweep() == 3
        assert not RecurringExecution.objects.exists()
        about = [sql for sql in found if "recurring_executions" in sql]
        # One more looks for runs that are open.
        assert len(about) == 1 + 4 + 3


@pytest.fixture
def small_batches(monkeypatch):
    """As if there were many jobs: one batch is ten of them."""
    monkeypatch.setattr(lifecycle_clear, "LARGEST_BATCH", 10)


def _later(much):
    return time_machine.travel(timezone.now() + much, tick=True)


def _lock(job_id):
    return list(FinishedExecution.objects.select_for_update().filter(pk=job_id))
