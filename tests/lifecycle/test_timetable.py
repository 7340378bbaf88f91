"""What recurs is made, changed, paused, run and taken away at run time."""

from datetime import timedelta
from threading import Barrier

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from robust_queue import (
    RecurringTaskError,
    apause_recurring,
    aresume_recurring,
    arun_recurring_now,
    aschedule_recurring,
    aunschedule_recurring,
    pause_recurring,
    resume_recurring,
    run_recurring_now,
    schedule_recurring,
    unschedule_recurring,
)
from robust_queue.arguments import load_call
from robust_queue.exceptions import PayloadTooLargeError, UnknownTaskError
from robust_queue.lifecycle.install import install
from robust_queue.lifecycle.recur import next_instant, recur
from robust_queue.lifecycle.remit import Remit
from robust_queue.models import BlockedExecution, Job, RecurringExecution, RecurringTask
from robust_queue.testing import drain
from tests.support.recurring import declaration, history, row
from tests.support.threads import in_threads
from tests.testapp import recurring_tasks
from tests.testapp.recurring_tasks import elsewhere, greet, immediate, report

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

LATER = timedelta(hours=2)


def scheduled(**options):
    given = {"schedule": "@hourly", "args": ["Alice"], **options}
    return schedule_recurring("k", given.pop("task", greet), **given)


class TestScheduling:
    def test_makes_a_row_that_schedulers_follow(self):
        made = scheduled(timezone="Asia/Tokyo", description="Hi", overlap="skip")
        assert (made.static, made.enabled, made.state) == (False, True, "active")
        assert made.next_run_at > timezone.now()
        assert next_instant("default", Remit(())) == made.next_run_at
        assert recur("default", now=made.next_run_at, remit=Remit(())) == 1
        assert load_call(Job.objects.get().arguments) == (["Alice"], {})

    def test_a_task_by_its_path(self):
        assert scheduled(task=greet.module_path).task_path == greet.module_path

    def test_only_declared_tasks(self):
        with pytest.raises(UnknownTaskError, match=r"os\.system"):
            scheduled(task="os.system")
        assert not RecurringTask.objects.exists()

    def test_nonsense_is_refused(self):
        for error, options in [
            (ValueError, {"schedule": "whenever"}),
            (ValueError, {"timezone": "Europe/Atlantis"}),
            (TypeError, {"args": []}),
            (TypeError, {"args": "Alice"}),
            (ValueError, {"on_missed": "panic"}),
            (ValueError, {"overlap": "maybe"}),
            (ValueError, {"missed_limit": 0}),
            (ValueError, {"jitter": 0.5}),
            (ValueError, {"jitter": -1}),
            (TypeError, {"enabled": "yes"}),
            (PayloadTooLargeError, {"args": ["x" * 2_000_000]}),
        ]:
            with pytest.raises(error):
                scheduled(**options)
        assert not RecurringTask.objects.exists()

    def test_what_other_backends_cannot_do_is_refused(self):
        for options in ({"overlap": "queue"}, {"jitter": 5}):
            with pytest.raises(ValueError, match="needs a"):
                scheduled(task=immediate, **options)

    def test_in_the_database_of_its_task(self):
        schedule_recurring("k", elsewhere, schedule="@daily")
        assert RecurringTask.objects.using("other").get().key == "k"
        with pytest.raises(RecurringTaskError, match="'other'"):
            schedule_recurring("l", elsewhere, schedule="@daily", using="default")

    def test_from_coroutines(self):
        async def there_and_back():
            made = await aschedule_recurring("k", report, schedule="@daily")
            runs = [await arun_recurring_now("k"), await apause_recurring("k")]
            assert await aresume_recurring("k")
            await aunschedule_recurring("k")
            return made.key, len(runs)

        assert async_to_sync(there_and_back)() == ("k", 2)
        assert not RecurringTask.objects.exists()


class TestTakenKeys:
    def test_are_refused(self):
        scheduled()
        with pytest.raises(RecurringTaskError, match="already"):
            scheduled()

    def test_unless_it_is_to_be_replaced(self):
        first = scheduled()
        made = scheduled(args=["Bob"], replace=True)
        assert (made.pk, made.next_run_at) == (first.pk, first.next_run_at)
        assert load_call(row().arguments) == (["Bob"], {})

    def test_other_times_count_from_now(self):
        scheduled(schedule="@yearly")
        scheduled(schedule="* * * * *", replace=True)
        assert row().next_run_at < timezone.now() + timedelta(minutes=2)

    def test_what_was_due_by_the_old_ones_is_recorded(self):
        first = scheduled().next_run_at
        RecurringTask.objects.update(next_run_at=first - LATER)
        scheduled(schedule="@yearly", replace=True)
        (left_out,) = history()
        assert (left_out.run_at, left_out.skipped) == (first - LATER, 2)
        assert left_out.reason == "rescheduled"

    def test_those_of_code_cannot_be(self):
        install("default", [declaration()])
        with pytest.raises(RecurringTaskError, match="in code or settings"):
            scheduled(replace=True)
        with pytest.raises(RecurringTaskError, match="would come back"):
            unschedule_recurring("k")

    def test_those_that_are_retired_are_free(self):
        install("default", [declaration()])
        RecurringTask.objects.update(retired_at=timezone.now(), next_run_at=None)
        made = scheduled()
        assert (made.static, made.state) == (False, "active")
        assert made.next_run_at > timezone.now()

    def test_of_several_at_once_one_is_first(self):
        barrier = Barrier(4)

        def schedule():
            barrier.wait(10)
            try:
                scheduled()
            except RecurringTaskError:
                return 0
            return 1

        assert sum(in_threads([schedule] * 4)) == 1
        assert RecurringTask.objects.count() == 1

    def test_or_the_last_has_its_way(self):
        in_threads([lambda: scheduled(replace=True)] * 4)
        assert RecurringTask.objects.count() == 1


class TestUnscheduling:
    def test_leaves_the_history(self):
        made = scheduled()
        recur("default", now=made.next_run_at)
        unschedule_recurring("k")
        assert not RecurringTask.objects.exists()
        assert len(history()) == 1

    def test_what_there_is_not(self):
        with pytest.raises(RecurringTaskError, match="no recurring task 'k'"):
            unschedule_recurring("k")


class TestPausing:
    def test_its_instants_pass(self):
        made = scheduled()
        assert pause_recurring("k") is True
        assert pause_recurring("k") is False
        assert recur("default", now=made.next_run_at) == 0

    def test_and_are_not_made_up_for(self):
        first = scheduled().next_run_at
        RecurringTask.objects.update(next_run_at=first - LATER)
        pause_recurring("k")
        assert resume_recurring("k") is True
        assert resume_recurring("k") is False
        assert row().next_run_at == first
        (left_out,) = history()
        assert (left_out.outcome, left_out.reason) == ("skipped", "paused")
        assert (left_out.run_at, left_out.skipped) == (first - LATER, 2)

    def test_replacing_it_with_one_that_runs_is_resuming_it(self):
        first = scheduled(enabled=False).next_run_at
        RecurringTask.objects.update(next_run_at=first - LATER)
        scheduled(replace=True)
        assert (row().enabled, row().next_run_at) == (True, first)
        assert history()[0].reason == "paused"

    def test_what_there_is_not(self):
        for verb in (pause_recurring, resume_recurring, run_recurring_now):
            with pytest.raises(RecurringTaskError, match="no recurring task"):
                verb("k")


class TestRunningNow:
    def test_makes_a_job_and_says_which(self):
        cursor = scheduled(queue_name="urgent").next_run_at
        entry = run_recurring_now("k")
        job = Job.objects.get()
        assert (entry.job_id, job.queue_name) == (job.id, "urgent")
        assert history()[0].by_hand is True
        assert row().next_run_at == cursor

    def test_whether_it_is_paused_or_not(self):
        scheduled(enabled=False)
        run_recurring_now("k")
        assert len(drain()) == 1

    def test_without_jitter(self):
        scheduled(jitter=3600)
        run_recurring_now("k")
        assert len(drain()) == 1

    def test_as_often_as_anybody_likes(self):
        scheduled()
        for _ in range(5):
            run_recurring_now("k")
        assert RecurringExecution.objects.count() == Job.objects.count() == 5

    def test_what_cannot_be_enqueued_is_told(self):
        scheduled()
        RecurringTask.objects.update(arguments="{")
        with pytest.raises(RecurringTaskError, match="DeserializationError"):
            run_recurring_now("k")
        assert not RecurringExecution.objects.exists()

    def test_on_another_backend(self):
        recurring_tasks.greeted.clear()
        scheduled(task=immediate, args=["now"])
        assert run_recurring_now("k").job_id is None
        assert recurring_tasks.greeted == ["now"]
        recurring_tasks.greeted.clear()

    def test_while_the_last_one_runs_they_take_turns(self):
        scheduled(overlap="queue")
        first, second = run_recurring_now("k"), run_recurring_now("k")
        assert [each.pk for each in BlockedExecution.objects.all()] == [second.job_id]
        assert [each.id for each in drain()] == [str(first.job_id), str(second.job_id)]
