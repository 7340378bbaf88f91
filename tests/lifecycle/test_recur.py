"""Recurring: every instant makes one job, however many schedulers there are."""

from datetime import datetime, timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.db import connection, transaction

from robust_queue.lifecycle.install import install
from robust_queue.lifecycle.recur import next_instant, recur
from robust_queue.lifecycle.timetable import pause, schedule
from robust_queue.models import Job, RecurringExecution, RecurringTask
from robust_queue.testing import drain
from tests.support.recurring import MINUTE, NOON, declaration, due, instants, row
from tests.support.threads import in_threads, started, uncommitted
from tests.testapp import recurring_tasks
from tests.testapp.recurring_tasks import elsewhere, greet, immediate, report

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


@pytest.fixture(autouse=True)
def greeted():
    recurring_tasks.greeted.clear()
    yield recurring_tasks.greeted
    recurring_tasks.greeted.clear()


class TestOneInstant:
    def test_makes_a_job_and_says_which(self):
        due(args=(5,))
        assert recur("default", now=NOON) == 1
        job, execution = Job.objects.get(), RecurringExecution.objects.get()
        assert execution.job_id == job.id
        assert job.task_path == report.module_path
        assert row().next_run_at == NOON + MINUTE

    def test_the_job_runs(self, greeted):
        due(args=(5,))
        recur("default", now=NOON)
        drain()
        assert greeted == [5]

    def test_it_is_the_nominal_one_however_late_the_scheduler_is(self):
        due()
        recur("default", now=NOON + timedelta(seconds=17, microseconds=3))
        assert instants() == [NOON]
        assert row().next_run_at == NOON + MINUTE

    def test_nothing_happens_before(self):
        due()
        assert recur("default", now=NOON - timedelta(microseconds=1)) == 0
        assert not Job.objects.exists()

    def test_nothing_happens_twice(self):
        due()
        assert [recur("default", now=NOON) for _ in range(3)] == [1, 0, 0]
        assert instants() == [NOON]

    def test_each_has_its_turn(self):
        due()
        fired = [recur("default", now=NOON + n * MINUTE) for n in range(3)]
        assert fired == [1, 1, 1]
        assert instants() == [NOON + n * MINUTE for n in range(3)]

    def test_several_tasks_at_the_same_instant(self):
        due(key="a")
        due(key="b")
        due(key="c", schedule="@daily")
        assert recur("default", now=NOON) == 2
        assert instants("a") == instants("b") == [NOON]

    def test_without_anything_declared(self):
        assert recur("default") == 0


class TestQueueAndPriority:
    def test_unset_they_are_those_of_the_task(self):
        due()
        recur("default", now=NOON)
        job = Job.objects.get()
        assert (job.queue_name, job.priority) == ("reports", 3)

    def test_set_they_are_those_of_the_schedule(self):
        due(queue_name="urgent", priority=0)
        recur("default", now=NOON)
        job = Job.objects.get()
        assert (job.queue_name, job.priority) == ("urgent", 0)


class TestTime:
    def test_instants_that_were_missed_are_made_up_for_once(self):
        due()
        now = NOON + timedelta(hours=3, seconds=20)
        assert recur("default", now=now) == 1
        assert instants() == [NOON + timedelta(hours=3)]
        assert row().next_run_at == NOON + timedelta(hours=3, minutes=1)

    def test_a_clock_that_steps_back_repeats_nothing(self):
        due()
        recur("default", now=NOON + MINUTE)
        fired = [recur("default", now=NOON + MINUTE - n * MINUTE) for n in range(5)]
        assert fired == [0] * 5
        assert len(instants()) == 1

    def test_a_cursor_that_was_set_back_repeats_nothing(self):
        due()
        recur("default", now=NOON)
        RecurringTask.objects.update(next_run_at=NOON)
        assert recur("default", now=NOON) == 0
        assert Job.objects.count() == 1
        assert row().next_run_at == NOON + MINUTE

    def test_a_project_without_time_zones(self, settings):
        settings.USE_TZ = False
        made = declaration(schedule="@hourly")
        noon = NOON.replace(tzinfo=None)
        install("default", [made], now=noon - MINUTE)
        assert recur("default", now=noon + MINUTE) == 1
        assert instants() == [noon]
        assert next_instant("default") == noon + timedelta(hours=1)

    def test_without_zones_an_hour_that_is_shown_twice_leads_forward(self, settings):
        settings.USE_TZ = False
        settings.TIME_ZONE = "Europe/Berlin"
        made = declaration(schedule="*/15 * * * *")
        moment = datetime.fromisoformat("2026-10-25T02:44")
        install("default", [made], now=moment)
        recur("default", now=moment + MINUTE)
        assert next_instant("default") == moment + timedelta(minutes=16)


class TestNextInstant:
    def test_is_the_earliest(self):
        due(key="a", schedule="@daily")
        due(key="b", schedule="30 * * * *")
        assert next_instant("default") == NOON + timedelta(minutes=30)

    def test_of_those_that_are_enabled(self):
        due()
        RecurringTask.objects.update(enabled=False)
        assert next_instant("default") is None

    def test_without_anything_declared(self):
        assert next_instant("default") is None


class TestDisabled:
    def test_it_does_not_run(self):
        due()
        RecurringTask.objects.update(enabled=False)
        assert recur("default", now=NOON) == 0
        assert row().next_run_at == NOON

    def test_nor_if_it_is_being_paused(self, row_locks):
        due()
        with uncommitted(pause, "default", "k"):
            assert started(recur, "default", now=NOON).result(30) == 0
        assert recur("default", now=NOON) == 0
        assert not Job.objects.exists()

    def test_a_schedule_that_changed_a_moment_ago_is_not_overruled(self, row_locks):
        due()
        RecurringTask.objects.update(static=False)

        def change():
            schedule("default", "k", report, schedule="@yearly", replace=True)

        with uncommitted(change):
            assert started(recur, "default", now=NOON).result(30) == 0
        assert recur("default", now=NOON) == 0
        assert row().next_run_at > NOON


class TestSeveralSchedulers:
    def test_one_of_them_makes_the_job(self):
        for n in range(10):
            due(key=f"k{n}")
        fired = in_threads([lambda: recur("default", now=NOON)] * 4)
        assert sum(fired) == 10
        assert Job.objects.count() == RecurringExecution.objects.count() == 10

    def test_over_many_instants(self):
        due()
        moments = [NOON + n * MINUTE for n in range(10)]
        fired = in_threads(
            [lambda: sum(recur("default", now=moment) for moment in moments)] * 3
        )
        made = instants()
        assert sum(fired) == len(made) == Job.objects.count()
        assert made[0] == NOON
        assert row().next_run_at > moments[-1]

    def test_one_that_meets_another_in_the_act_leaves_it_to_it(self, row_locks):
        due()
        with uncommitted(recur, "default", now=NOON) as fired:
            assert fired == 1
            second = started(recur, "default", now=NOON)
        assert second.result(30) == 0
        assert Job.objects.count() == 1

    def test_one_that_was_in_the_act_and_failed_is_replaced(self, row_locks):
        due()

        def begin_and_fail():
            recur("default", now=NOON)
            transaction.set_rollback(True)

        with uncommitted(begin_and_fail):
            second = started(recur, "default", now=NOON)
            assert second.result(30) == 0, "it does not wait"
        assert recur("default", now=NOON) == 1
        assert Job.objects.count() == 1


class TestOtherBackends:
    def test_a_task_that_runs_at_once(self, greeted):
        due(immediate, args=("now",))
        assert recur("default", now=NOON) == 1
        assert greeted == ["now"]
        assert RecurringExecution.objects.get().job_id is None

    def test_it_runs_when_the_instant_is_recorded(self, monkeypatch):
        due(immediate, args=("now",))
        seen = []

        def observe(value):
            seen.append((connection.in_atomic_block, instants()))

        observer = SimpleNamespace(append=observe)
        with monkeypatch.context() as patched:
            patched.setattr(recurring_tasks, "greeted", observer)
            recur("default", now=NOON)
        assert seen == [(False, [NOON])]

    def test_one_that_fails_is_logged(self, caplog, monkeypatch):
        due(immediate, args=("now",))
        fail = lambda *args: 1 / 0  # noqa: E731
        monkeypatch.setattr(type(immediate.get_backend()), "enqueue", fail)
        assert recur("default", now=NOON) == 1
        assert "'k' could not be enqueued" in caplog.text
        assert instants() == [NOON]

    def test_a_queue_in_another_database_has_its_own_scheduler(self):
        due(elsewhere, using="other", schedule="@hourly")
        assert recur("default", now=NOON) == 0
        assert recur("other", now=NOON) == 1
        execution = RecurringExecution.objects.using("other").get()
        assert execution.job_id == Job.objects.using("other").get().id

    def test_a_job_that_another_database_keeps_is_not_recorded_by_its_id(self):
        due(elsewhere)
        assert recur("default", now=NOON) == 1
        assert RecurringExecution.objects.get().job_id is None
        assert isinstance(Job.objects.using("other").get().id, UUID)


def test_inside_the_transaction_of_a_test():
    with transaction.atomic():
        due(greet, args=("Alice",))
        assert recur("default", now=NOON) == 1
    assert len(drain()) == 1
