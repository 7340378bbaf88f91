"""Recurring tasks that are due at noon, and what has become of them."""

from datetime import UTC, datetime, timedelta

from robust_queue.lifecycle.install import install
from robust_queue.models import RecurringExecution, RecurringTask
from robust_queue.models.recurring import Outcome
from robust_queue.recurrence import Recurrence
from robust_queue.schedules import Schedule
from tests.testapp.recurring_tasks import report

START = datetime(2026, 1, 1, 11, 59, 30, tzinfo=UTC)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NO_RUN = (Outcome.SKIPPED, Outcome.REFUSED)


def declaration(task=report, *, key="k", schedule="* * * * *", **options):
    """What ``@recurring`` would declare, kept out of the list of declarations."""
    options = {"args": (), "kwargs": {}, "place": "here:1", **options}
    return Recurrence(key=key, task=task, schedule=Schedule(schedule), **options)


def due(task=report, *, using="default", **options):
    """Install something that recurs at noon and every minute, beside the others."""
    rows = RecurringTask.objects.using(using)
    rows.update(static=False)
    install(using, [declaration(task, **options)], now=START)
    rows.update(static=True)


def row(key="k"):
    return RecurringTask.objects.get(key=key)


def instants(key="k"):
    """For which instants the task was enqueued."""
    entries = history(key)
    return [each.run_at for each in entries if each.outcome not in NO_RUN]


def history(key="k"):
    """All that is written down about it, in order."""
    return list(RecurringExecution.objects.filter(task_key=key).order_by("run_at"))
