"""Recurring tasks that wait in vain, or for too long."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Literal, TypeAlias

from django.db.models import Q
from django.utils import timezone

from robust_queue.lifecycle.ticks import Timeline
from robust_queue.models import RecurringTask
from robust_queue.models.recurring import SILENCE

from .findings import SHOWN, Finding, bounded

Severity: TypeAlias = Literal["problem", "warning"]

# What a scheduler that is alive would have seen to by now.
OVERDUE = timedelta(minutes=1)


def examine(database: str) -> Iterator[Finding]:
    """What an operator would look at first. One statement."""
    now = timezone.now()
    late, silent = now - OVERDUE, now - SILENCE
    is_silent = Q(static=True, declared_at__lt=silent)
    is_due = Q(enabled=True, next_run_at__lt=late)
    is_stuck = Q(enabled=True, next_run_at=None)
    rows = RecurringTask.objects.using(database).filter(retired_at=None)
    strange = rows.filter(is_silent | is_due | is_stuck).defer("arguments")
    found = list(strange.order_by("next_run_at", "key"))
    orphans = [row for row in found if row.is_orphaned]
    others = [row for row in found if not row.is_orphaned]
    yield from _overdue([row for row in others if row.next_run_at and row.enabled])
    yield from _without_cursor([row for row in others if row.next_run_at is None])
    yield from _orphaned(orphans)


def examine_deeply(database: str) -> Iterator[Finding]:
    """Ask every schedule whether its cursor stands where it should."""
    rows = RecurringTask.objects.using(database).filter(enabled=True, retired_at=None)
    ahead = [
        f"{row.key}, next run at {row.next_run_at}"
        for row in rows.order_by("key").iterator()
        if _is_too_far_ahead(row)
    ]
    text = (
        "Recurring tasks wait although their schedules have instants before: a clock "
        "was ahead when they ran last. Pause and resume them to go on."
    )
    yield from _found("warning", text, ahead)


def _overdue(rows: Sequence[RecurringTask]) -> Iterator[Finding]:
    text = "Recurring tasks are overdue by more than a minute: does a scheduler run?"
    told = [f"{row.key}, due at {row.next_run_at}" for row in rows]
    yield from _found("problem", text, told)


def _without_cursor(rows: Sequence[RecurringTask]) -> Iterator[Finding]:
    text = "Recurring tasks have schedules that no scheduler has understood."
    told = [f"{row.key} {row.schedule} {row.timezone}".strip() for row in rows]
    yield from _found("problem", text, told)


def _orphaned(rows: Sequence[RecurringTask]) -> Iterator[Finding]:
    text = "Recurring tasks are declared by no scheduler that runs."
    told = [f"{row.key}, since {row.declared_at}" for row in rows]
    yield from _found("warning", text, told)


def _found(severity: Severity, text: str, rows: Sequence[str]) -> Iterator[Finding]:
    if rows:
        yield Finding(severity, text, bounded(rows[:SHOWN], len(rows) - SHOWN))


def _is_too_far_ahead(row: RecurringTask) -> bool:
    try:
        first = Timeline.of(row).after(timezone.now())
    except ValueError:
        return False  # what nobody understands was told when it was due
    return row.next_run_at is not None and row.next_run_at > first
