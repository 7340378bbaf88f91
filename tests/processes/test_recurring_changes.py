"""What people change while a scheduler runs, and schedulers that end in the midst."""

import json
import os
import time
from datetime import UTC, datetime
from signal import SIGKILL, SIGTERM

import pytest

from robust_queue import (
    pause_recurring,
    resume_recurring,
    run_recurring_now,
    schedule_recurring,
    unschedule_recurring,
)
from robust_queue.models import Job, RecurringExecution, RecurringTask
from robust_queue.processes.exits import ExitCode
from tests.settings import KIND
from tests.support.timetables import FAR, many
from tests.testapp.clockwork import VARIABLE
from tests.testapp.timetabled_tasks import tick

MODULES = ["tests.testapp.clockwork", "tests.testapp.timetabled_tasks"]
AT_MOST = 5.0
# Long enough for something that comes every second to come, if it still does.
A_WHILE = 1.3
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def scheduler(supervised):
    """A supervisor with nothing but a scheduler, and nothing that recurs."""
    supervisor = supervised("--only", "scheduler", task_modules=MODULES)
    supervisor.until(lambda: supervisor.rows("Scheduler"), "its scheduler is up")
    return supervisor


def put(version, schedule="every second", *, replace=True):
    options = {"schedule": schedule, "on_missed": "skip", "replace": replace}
    schedule_recurring("k", tick, args=("k", version), **options)


def versions():
    """The arguments of every job so far."""
    jobs = Job.objects.values_list("arguments", flat=True)
    return [json.loads(each)["args"][1] for each in jobs]


def seen_in_time(supervisor, version):
    """Wait for a run with these arguments; no longer than people have to."""
    supervisor.until(lambda: version in versions(), f"run {version}", timeout=AT_MOST)


def nothing_comes():
    before = Job.objects.count()
    time.sleep(A_WHILE)
    assert Job.objects.count() == before


# The same everywhere, and it takes long: a scheduler sleeps for seconds.
@pytest.mark.skipif(KIND != "postgresql", reason="one kind of database is enough")
def test_changes_take_effect_within_seconds(scheduler):
    # By then it sleeps, as it does whenever nothing is due.
    put(1, replace=False)
    seen_in_time(scheduler, 1)
    put(2)
    seen_in_time(scheduler, 2)
    assert pause_recurring("k")
    nothing_comes()
    run = run_recurring_now("k")
    assert Job.objects.filter(pk=run.job_id).exists()
    so_far = Job.objects.count()
    assert resume_recurring("k")
    scheduler.until(lambda: Job.objects.count() > so_far, "it goes on", timeout=AT_MOST)
    put(3, "@yearly")
    nothing_comes()
    put(4)
    unschedule_recurring("k")
    nothing_comes()
    assert {3, 4}.isdisjoint(versions())
    assert scheduler.stop() == ExitCode.DONE
    assert "goes on after an error" not in scheduler.log


def test_a_scheduler_is_called_up_when_something_is_made_to_recur(supervised):
    supervisor = supervised(
        task_modules=MODULES, environment={VARIABLE: json.dumps({"look_often": 0.3})}
    ).until_up()
    time.sleep(1)  # it looks some times, and has no reason
    assert not supervisor.rows("Scheduler")
    put(1, replace=False)
    supervisor.until(lambda: 1 in versions(), "it has run")
    assert len(supervisor.rows("Scheduler")) == 1
    assert supervisor.log.count("A scheduler is needed from now on.") == 1
    assert supervisor.stop() == ExitCode.DONE


@pytest.mark.parametrize("number", [SIGTERM, SIGKILL])
def test_one_that_ends_in_the_midst_of_much_loses_nothing(supervised, number):
    many(2000, tick, schedule="0 12 * * *", next_run_at=NOON)
    options = {"task_modules": MODULES, "recurring_tasks": FAR}
    supervisor = supervised("--only", "scheduler", **options)
    supervisor.until(RecurringExecution.objects.exists, "it has begun")
    (pid,) = supervisor.pids("Scheduler")
    os.kill(pid, number)
    late = RecurringTask.objects.filter(next_run_at=NOON)
    supervisor.until(lambda: not late.exists(), "somebody has gone on")
    supervisor.until(
        lambda: set(supervisor.pids("Scheduler")) - {pid}, "a successor is up"
    )
    assert supervisor.stop() == ExitCode.DONE
    runs = RecurringExecution.objects.exclude(job_id=None)
    assert runs.count() == Job.objects.count() == 2000
    assert len(set(runs.values_list("task_key", flat=True))) == 2000
    jobs = set(Job.objects.values_list("pk", flat=True))
    assert set(runs.values_list("job_id", flat=True)) == jobs
