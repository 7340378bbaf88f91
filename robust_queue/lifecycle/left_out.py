"""Instants that became no job ──▶ what is written down of them."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from robust_queue.models import RecurringExecution, RecurringTask
from robust_queue.models.recurring import Outcome

from .ticks import Skipped, Timeline

_LEAST = timedelta(microseconds=1)


def entry_of(key: str, skipped: Skipped) -> RecurringExecution:
    """One row, however many there are in a row."""
    return RecurringExecution(
        task_key=key,
        run_at=skipped.first,
        skipped_until=skipped.last,
        skipped=skipped.number,
        outcome=Outcome.SKIPPED,
        reason=skipped.reason,
    )


def write_left_out(database: str, entries: Sequence[RecurringExecution]) -> None:
    # That an instant was left out may be known: nothing depends on it.
    rows = RecurringExecution.objects.using(database)
    rows.bulk_create(entries, ignore_conflicts=True)


def pass_over(
    database: str, row: RecurringTask, *, now: datetime, reason: str
) -> datetime:
    """Write down the instants from the cursor until now; return the one behind them."""
    timeline = Timeline.of(row)
    if row.next_run_at is not None and row.next_run_at <= now:
        before = row.next_run_at - _LEAST
        if latest := timeline.latest(1, after=before, until=now):
            skipped = timeline.skipped(before, latest[-1], reason)
            write_left_out(database, [entry_of(row.key, skipped)])
    return timeline.after(now)
