"""Why is this job not running? In every state, and for every obstacle."""

import json
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from robust_queue.lifecycle import why
from robust_queue.lifecycle.why import why_not_running
from robust_queue.models import Job
from tests.support import rows
from tests.testapp.limited_tasks import one_by_account

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def reasons(row):
    job = Job.objects.with_state().get(pk=row.pk)
    return why_not_running("default", job)


def told(row):
    return " ".join(each.text for each in reasons(row))


def worker(*queues, threads=3, quiet=False, **values):
    facts = {"queues": list(queues), "threads": threads, "quiet": quiet}
    return rows.process("Worker", metadata=json.dumps(facts), **values)


class TestOver:
    def test_finished(self):
        assert "succeeded" in told(rows.finished())

    def test_failed(self):
        said = told(rows.failed())
        assert "failed for good" in said
        assert "if somebody retries it" in said

    def test_lost(self):
        assert "stands nowhere" in told(rows.job())


class TestScheduled:
    def test_for_later(self):
        at = timezone.now() + 10 * MINUTE
        said = told(rows.scheduled(scheduled_at=at))
        assert said == f"It is to run at {at:%Y-%m-%d %H:%M:%S} UTC, not before."

    def test_for_another_attempt(self):
        at = timezone.now() + MINUTE
        assert "2 attempts" in told(rows.scheduled(scheduled_at=at, attempts=2))

    def test_due_without_a_dispatcher(self):
        late = rows.scheduled(scheduled_at=timezone.now() - MINUTE)
        assert "No dispatcher is alive" in told(late)
        rows.process("Dispatcher")
        assert "No dispatcher" not in told(late)
        assert "has not been made ready" in told(late)


class TestBlocked:
    @pytest.fixture(autouse=True)
    def dispatcher(self):
        rows.process("Dispatcher")

    def test_by_a_job_that_runs(self):
        key = "accounts/ada"
        holder = rows.claimed(of=rows.job(concurrency_key=key))
        rows.claimed(of=rows.job(concurrency_key="accounts/ada lovelace"))
        rows.semaphore(key=key, value=0, limit=1)
        job = rows.job(concurrency_key=key)
        found = reasons(rows.blocked(of=job, concurrency_key=key))
        assert "Only 1 job of “accounts/ada”" in found[0].text
        assert (found[0].subject, found[0].name) == ("key", key)
        assert (found[1].subject, found[1].name) == ("job", str(holder.pk))
        assert len(found) == 2

    def test_by_one_that_is_ready(self):
        key = "accounts/ada"
        holder = rows.ready(of=rows.job(concurrency_key=key))
        rows.semaphore(key=key, value=0, limit=1, holder_id=holder.pk)
        row = rows.blocked(of=rows.job(concurrency_key=key), concurrency_key=key)
        assert f"Job {holder.pk} has a slot of it, and is ready." in told(row)

    def test_although_there_is_a_slot(self):
        row = rows.blocked(of=rows.job(concurrency_key="k"), concurrency_key="k")
        assert "within seconds" in told(row)

    @pytest.mark.django_db(transaction=True)
    def test_as_tasks_make_it(self):
        first, second = (one_by_account.enqueue("ada") for _ in range(2))
        job = Job.objects.with_state().get(pk=second.id)
        found = why_not_running("default", job)
        assert found[1].name == first.id


class TestReady:
    def test_without_any_worker(self):
        assert "No worker is alive." in told(rows.ready())

    def test_without_one_for_its_queue(self):
        worker("mail", "photo*")
        worker("*", silent_for=timedelta(hours=1))
        assert "serves the queue “default”" in told(rows.ready())

    def test_while_all_are_busy(self):
        at_it = worker("*", threads=1)
        rows.claimed(by=at_it)
        assert "as many jobs as threads" in told(rows.ready())

    def test_while_all_are_quiet(self):
        worker("*", quiet=True)
        row = rows.ready()
        assert "The workers that serve its queue are quiet" in told(row)
        rows.claimed(by=worker("*", threads=1))
        said = told(row)
        assert "1 of the workers that serve its queue is quiet." in said
        assert "1 worker serves its queue, and has as many jobs as threads" in said
        assert "The workers that serve" not in said

    def test_behind_others(self):
        worker("*")
        urgent, first = rows.ready(of=rows.job(priority=-1)), rows.ready()
        elsewhere = rows.ready(of=rows.job(queue_name="mail"))
        last = rows.ready()
        assert "2 jobs of its queue go before it." in told(last)
        assert "1 job of its queue goes before it." in told(first)
        assert "next of its queue" in told(urgent)
        assert "next of its queue" in told(elsewhere)

    def test_behind_very_many(self, monkeypatch):
        monkeypatch.setattr(why, "MOST_AHEAD", 2)
        worker("*")
        for _ in range(5):
            last = rows.ready()
        assert "2 or more jobs" in told(last)

    def test_in_a_paused_queue(self):
        worker("*")
        rows.pause(queue_name="default")
        (first, *_) = reasons(rows.ready())
        assert "is paused, until somebody resumes it." in first.text
        assert (first.subject, first.name) == ("queue", "default")

    def test_of_a_paused_task(self):
        rows.task_pause(task_path=rows.TASK, until=timezone.now() + MINUTE)
        (first, *_) = reasons(rows.ready())
        assert "is paused until 20" in first.text
        assert (first.subject, first.name) == ("task", rows.TASK)

    def test_a_pause_that_is_over_is_none(self):
        rows.pause(queue_name="default", until=timezone.now() - MINUTE)
        assert "paused" not in told(rows.ready())

    def test_of_a_task_that_nobody_knows(self):
        row = rows.ready(of=rows.job(task_path="shop.tasks.gone"))
        assert "No task shop.tasks.gone is declared" in told(row)


class TestClaimed:
    def test_by_one_that_is_alive(self):
        holder = worker("*")
        (only,) = reasons(rows.claimed(by=holder))
        assert f"{holder.name} has it since" in only.text
        assert (only.subject, only.name) == ("process", str(holder.pk))

    def test_by_one_that_is_silent(self):
        row = rows.claimed(by=worker("*", silent_for=timedelta(hours=1)))
        assert "has not been heard of lately" in told(row)

    def test_and_asked_to_end(self):
        row = rows.claimed(by=worker("*"))
        rows.cancellation(job_id=row.pk)
        assert "It was asked to end." in told(row)


class TestTheVerb:
    def test_tells_of_each(self):
        row, out = rows.finished(), StringIO()
        call_command("robust_queue", "why", str(row.pk), stdout=out)
        assert out.getvalue().startswith(f"{rows.TASK} {row.pk} is finished.\n  It has")

    def test_and_which_there_are_not(self):
        with pytest.raises(CommandError, match="There is no job"):
            call_command("robust_queue", "why", str(uuid4()), stdout=StringIO())
