"""Recurring tasks that wait in vain, or for too long."""

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from robust_queue.lifecycle.ticks import Timeline
from robust_queue.models import RecurringTask
from robust_queue.models.recurring import SILENCE

from .findings import SHOWN, Finding, bounded, named

# What a scheduler that is alive would have seen to by now.
OVERDUE = timedelta(minutes=1)


def examine(database: str) -> Iterator[Finding]:
    """What an operator would look at first."""
    rows = RecurringTask.objects.using(database).filter(retired_at=None)
    silent = rows.filter(static=True, declared_at__lt=timezone.now() - SILENCE)
    yield from _overdue(rows.exclude(pk__in=silent.values("pk")))
    yield from _without_cursor(rows)
    yield from _orphaned(silent)


def examine_deeply(database: str) -> Iterator[Finding]:
    """Ask every schedule whether its cursor stands where it should."""
    rows = RecurringTask.objects.using(database).filter(enabled=True, retired_at=None)
    ahead = [
        f"{row.key}, next run at {row.next_run_at}"
        for row in rows.order_by("key").iterator()
        if _is_too_far_ahead(row)
    ]
    if ahead:
        text = (
            "Recurring tasks wait although their schedules have instants before: a "
            "clock was ahead when they ran last. Pause and resume them to go on."
        )
        yield Finding("warning", text, bounded(ahead[:SHOWN], len(ahead) - SHOWN))


def _overdue(rows: QuerySet[RecurringTask]) -> Iterator[Finding]:
    late = rows.filter(enabled=True, next_run_at__lt=timezone.now() - OVERDUE)
    due = late.order_by("next_run_at").values_list("key", "next_run_at")
    if found := named((due, lambda key, moment: f"{key}, due at {moment}")):
        text = (
            "Recurring tasks are overdue by more than a minute: does a scheduler run?"
        )
        yield Finding("problem", text, found)


def _without_cursor(rows: QuerySet[RecurringTask]) -> Iterator[Finding]:
    stuck = rows.filter(enabled=True, next_run_at=None)
    facts = stuck.order_by("key").values_list("key", "schedule", "timezone")
    if found := named((facts, lambda *facts: " ".join(facts).strip())):
        text = "Recurring tasks have schedules that no scheduler has understood."
        yield Finding("problem", text, found)


def _orphaned(silent: QuerySet[RecurringTask]) -> Iterator[Finding]:
    rows = silent.order_by("key").values_list("key", "declared_at")
    if found := named((rows, lambda key, since: f"{key}, since {since}")):
        text = "Recurring tasks are declared by no scheduler that runs."
        yield Finding("warning", text, found)


def _is_too_far_ahead(row: RecurringTask) -> bool:
    try:
        first = Timeline.of(row).after(timezone.now())
    except ValueError:
        return False  # what nobody understands was told when it was due
    return row.next_run_at is not None and row.next_run_at > first
