"""Schedulers, for longer: whatever happens to them, when much is due, and at rest.

The figures are printed, with the seed of the chaos: `make test-long ARGS=-s`.

    RQ_RECURRING_SECONDS=180   how long the chaos takes
    RQ_RECURRING_SEED=…        the seed of a run to be repeated, as far as chance allows
"""

import os
import random
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from robust_queue import schedule_recurring
from robust_queue.models import Job, RecurringExecution, RecurringTask
from robust_queue.processes.exits import ExitCode
from tests.settings import KIND
from tests.support.recurring_chaos import RecurringChaos
from tests.support.statement_count import statement_count
from tests.support.timetables import FAR, NIGHT, many, timetable
from tests.testapp.timetabled_tasks import tick


def told(name, default):
    return os.environ.get(f"RQ_RECURRING_{name}") or default


# ── Chaos ──────────────────────────────────────────────────────────────────────

SECONDS = float(told("SECONDS", 60 if KIND == "sqlite" else 180))
BLOWS = {
    "kill_scheduler": 6,
    "terminate_scheduler": 2,
    "stop_scheduler": 5,
    "kill_supervisor": 2,
    "kill_host": 2,
    "stop_host": 2,
    "kill_all_hosts": 1,
    "step_forward": 5,
    "step_back": 5,
}


@pytest.mark.timeout(600)
def test_every_instant_is_told_once(supervised, tmp_path):
    """200 schedules and three schedulers, which are killed, stopped and misled.

    Three hours of a night in which clocks are turned, sixty times as fast, by clocks
    that step back and forth. Every instant must be told: as a run with one job, or
    among those that were left out.
    """
    figures = RecurringChaos(
        supervised,
        tmp_path,
        lines=timetable(),
        hosts=3,
        seed=int(told("SEED", random.randrange(2**32))),
        begin=NIGHT,
        seconds=SECONDS,
        rate=60,
        blows=BLOWS,
        pause=1.5,
        edits=3,
        is_attended=True,
    ).run()
    assert figures["instants"] > 300 * SECONDS


# ── Much at once ───────────────────────────────────────────────────────────────

MANY = 10_000
AHEAD = timedelta(seconds=15)


def test_ten_thousand_that_are_due_at_once(supervised):
    """From the instant at which they are due until the last one is written down."""
    due = timezone.now().replace(microsecond=0) + AHEAD
    hourly = f"{due.second} {due.minute} * * * *"
    many(MANY, tick, schedule=hourly, next_run_at=due)
    supervisor = a_scheduler(supervised)
    assert timezone.now() < due, "it was up too late"
    left = RecurringTask.objects.filter(next_run_at=due)
    supervisor.until(lambda: not left.exists(), "all have had their turn", timeout=60)
    seconds = (timezone.now() - due).total_seconds()
    print(f"\n{MANY:,} due at once: {seconds:.2f} s on {KIND}")  # noqa: T201
    assert len(supervisor.rows("Scheduler")) == 1
    assert supervisor.stop() == ExitCode.DONE
    assert RecurringExecution.objects.filter(run_at=due).count() == MANY
    assert Job.objects.count() == MANY
    assert seconds < 5


# ── At rest ────────────────────────────────────────────────────────────────────

IDLE_SECONDS = 120
TARGETS = 6
LATE = timedelta(seconds=0.3)
# That hearts beat is what any process costs.
QUIET_HEARTS = {"process_heartbeat_interval": 600, "process_alive_threshold": 3000}


def test_an_idle_scheduler_sleeps(supervised, server):
    supervisor = a_scheduler(supervised, settings=server.settings, **QUIET_HEARTS)
    time.sleep(5)  # it comes to rest
    with statement_count(server) as count:
        time.sleep(IDLE_SECONDS)
    print(  # noqa: T201
        f"\nidle: {count.number} statements in {IDLE_SECONDS} s on {KIND}"
    )
    assert count.number <= IDLE_SECONDS / 3
    assert supervisor.stop() == ExitCode.DONE


def test_it_wakes_up_for_its_targets(supervised):
    """They are farther apart than it ever sleeps."""
    schedule_recurring("near", tick, args=("near",), schedule="every 7 seconds")
    supervisor = a_scheduler(supervised)
    runs = RecurringExecution.objects.filter(task_key="near").order_by("run_at")
    supervisor.until(lambda: runs.count() >= TARGETS, "so many runs", timeout=60)
    assert supervisor.stop() == ExitCode.DONE
    instants = dict(runs.values_list("job_id", "run_at"))
    late = [
        enqueued_at - instants[pk]
        for pk, enqueued_at in Job.objects.values_list("pk", "enqueued_at")
    ]
    milliseconds = [each / timedelta(milliseconds=1) for each in late]
    print(  # noqa: T201
        f"\nafter {len(late)} targets: {min(milliseconds):.0f} to "
        f"{max(milliseconds):.0f} ms on {KIND}"
    )
    assert timedelta(0) <= min(late) <= max(late) < LATE


def a_scheduler(start, **options):
    supervisor = start(
        *("--only", "scheduler"),
        task_modules=["tests.testapp.timetabled_tasks"],
        recurring_tasks=FAR,
        **options,
    )
    supervisor.until(lambda: supervisor.rows("Scheduler"), "its scheduler is up")
    return supervisor
