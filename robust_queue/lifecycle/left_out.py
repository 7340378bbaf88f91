"""Instants that became no job ──▶ what is written down of them."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from robust_queue.models import RecurringExecution, RecurringTask
from robust_queue.models.recurring import Outcome

from .ticks import LEAST, Skipped, Timeline


def entries_of(
    database: str, skipped: Sequence[tuple[RecurringTask, Skipped]]
) -> list[RecurringExecution]:
    """What is to be written down: one row, however many instants there are in a row.

    Unless something is told of them already, since their cursor was set back: then it
    is told of the others.
    """
    known = _known(database, skipped) if skipped else set()
    return [
        _entry(row.key, part)
        for row, each in skipped
        for part in (
            _untold(database, row, each) if (row.key, each.first) in known else [each]
        )
    ]


def _known(
    database: str, skipped: Sequence[tuple[RecurringTask, Skipped]]
) -> set[tuple[str, datetime]]:
    found = RecurringExecution.objects.using(database).filter(
        task_key__in={row.key for row, _ in skipped},
        run_at__in={each.first for _, each in skipped},
    )
    return set(found.values_list("task_key", "run_at"))


def _untold(database: str, row: RecurringTask, skipped: Skipped) -> Iterator[Skipped]:
    """The parts of it between those that something is told of."""
    told = RecurringExecution.objects.using(database).filter(
        task_key=row.key,
        by_hand=False,
        run_at__range=(skipped.first, skipped.last),
    )
    begin, timeline = skipped.first - LEAST, Timeline.of(row)
    for first, last in told.order_by("run_at").values_list("run_at", "skipped_until"):
        yield from _part(timeline, begin, first - LEAST, skipped.reason)
        begin = last or first
    yield from _part(timeline, begin, skipped.last, skipped.reason)


def _part(
    timeline: Timeline, after: datetime, until: datetime, reason: str
) -> Iterator[Skipped]:
    for last in timeline.latest(1, after=after, until=until):
        yield timeline.skipped(after, last, reason)


def _entry(key: str, skipped: Skipped) -> RecurringExecution:
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
) -> datetime | None:
    """Write down the instants from the cursor until now; return the one behind them.

    To be called by whoever has locked the row, or some of them might be run as well.
    """
    try:
        timeline = Timeline.of(row)
    except ValueError:
        return None  # nobody can tell which instants it had
    if row.next_run_at is not None and row.next_run_at <= now:
        before = row.next_run_at - LEAST
        skipped = [(row, each) for each in _part(timeline, before, now, reason)]
        write_left_out(database, entries_of(database, skipped))
    return timeline.after(now)
