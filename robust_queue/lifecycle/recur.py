"""A schedule ──▶ jobs, one per instant, however many schedulers there are.

The cursor ``next_run_at`` is the instant that comes next. Whoever has locked the row
moves it on and makes the job, in the same transaction. What is recorded is the instant
of the schedule, never the clock at firing, so a clock that steps back repeats nothing.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from django.db import connections, transaction
from django.db.models import Case, DateTimeField, F, QuerySet, Value, When
from django.utils import timezone

from robust_queue.configuration import current
from robust_queue.models import RecurringExecution, RecurringTask
from robust_queue.models.recurring import Outcome, Overlap
from robust_queue.stores.conflicts import retried

from .hand_in import Tick, hand_in
from .left_out import entries_of, write_left_out
from .remit import Remit
from .selection import standing
from .ticks import Verdict, decide

logger = logging.getLogger("robust_queue")

BATCH_SIZE = 500
# Whoever missed many makes up for many: beyond these the next transaction goes on.
MOST_TICKS = 2_000
_ENDED = ("finished", "failed")
# What has become of an instant of another backend is not ours to tell.
_FIRED = {Outcome.ENQUEUED, Outcome.HANDED_OVER}


def recur(
    database: str, *, now: datetime | None = None, remit: Remit | None = None
) -> int:
    """Enqueue every recurring task that is due; return how many jobs.

    A task that cannot be enqueued is logged, and its instant is over. An error of the
    database is raised, after the other tasks had their turn, and the instant stays due.
    """
    moment, remit = now or timezone.now(), remit or Remit()
    remit.remember(moment)
    fired, is_full = 0, True
    while is_full:
        try:
            batch = _fire(database, _Order(remit, moment))
        except Exception:
            if _is_out_of_reach(database):
                raise
            return fired + _one_by_one(database, remit, moment)
        fired, is_full = fired + batch.fired, batch.is_full
    return fired


def next_instant(database: str, remit: Remit | None = None) -> datetime | None:
    """When the next recurring task is due; None if there is none. One statement."""
    rows = (remit or Remit()).rows(database)
    found: datetime | None = rows.values_list("next_run_at", flat=True).first()
    return found


def anything_recurs(database: str) -> bool:
    """Is there anything for a scheduler to do, or to look after?"""
    return RecurringTask.objects.using(database).filter(retired_at=None).exists()


# ── Firing ─────────────────────────────────────────────────────────────────────


class _Order(NamedTuple):
    """What is to be fired: all that is due, or one row of it."""

    remit: Remit
    now: datetime
    pk: int | None = None

    def rows(self, database: str) -> QuerySet[RecurringTask]:
        due = self.remit.rows(database).filter(next_run_at__lte=self.now)
        return due[:BATCH_SIZE] if self.pk is None else due.filter(pk=self.pk)


class _Batch(NamedTuple):
    fired: int
    # Then there may be more.
    is_full: bool


def _fire(database: str, order: _Order) -> _Batch:
    return retried(database, partial(_take, database, order))


def _take(database: str, order: _Order) -> _Batch:
    """Lock rows, make the jobs of their instants, and move the cursors on."""
    with transaction.atomic(using=database):
        # Rows that another scheduler is about to fire are none of ours. Where nothing
        # can be locked there is one writer, and whoever comes second has to look again.
        features = connections[database].features
        skips = features.has_select_for_update_skip_locked
        rows = list(order.rows(database).select_for_update(skip_locked=skips))
        judged = _judged(rows, order)
        ticks = [Tick(row, at) for row, verdict in judged for at in verdict.runs]
        entries = _made(database, ticks, order)
        skipped = [(row, each) for row, verdict in judged for each in verdict.skipped]
        _write_down(database, [*entries, *entries_of(database, skipped)])
        _move_on(database, judged)
    fired = sum(each.outcome in _FIRED for each in entries)
    is_full = len(rows) == BATCH_SIZE or len(ticks) >= MOST_TICKS
    return _Batch(fired, is_full)


def _judged(
    rows: Sequence[RecurringTask], order: _Order
) -> list[tuple[RecurringTask, Verdict]]:
    """What becomes of each, as far as one transaction may go; the rest stays due."""
    judged, ticks = [], 0
    for row in rows:
        if ticks >= MOST_TICKS:
            break
        if not order.remit.leaves(row, order.now):
            verdict = _judge(row, order.now)
            judged.append((row, verdict))
            ticks += len(verdict.runs)
    return judged


def _judge(row: RecurringTask, now: datetime) -> Verdict:
    try:
        return decide(row, now=now, grace=current().recurring_grace)
    except (ValueError, OverflowError):
        logger.exception("Recurring task %r has no sensible schedule.", row.key)
        at = row.next_run_at
        return Verdict(runs=[at] if at else [], next_run_at=None)


def _one_by_one(database: str, remit: Remit, now: datetime) -> int:
    """Find out whose error it was, so that only they have to suffer from it."""
    fired, trouble = 0, None
    due = remit.rows(database).filter(next_run_at__lte=now)
    for pk in list(due.values_list("pk", flat=True)):
        try:
            fired += _fire(database, _Order(remit, now, pk)).fired
        except Exception as error:
            if _is_out_of_reach(database):
                raise
            trouble = trouble or error
    if trouble is not None:
        raise trouble
    return fired


def _is_out_of_reach(database: str) -> bool:
    connection = connections[database]
    return connection.connection is None or not connection.is_usable()


# ── Instants ───────────────────────────────────────────────────────────────────


def _made(
    database: str, ticks: Sequence[Tick], order: _Order
) -> list[RecurringExecution]:
    new = _without_what_has_run(database, ticks)
    going = _going(database, [each for each in new if _minds_overlaps(each)])
    wanted, left_out = [], []
    for tick in new:
        if tick.row.key in going:
            left_out.append(_overlapping(tick, going[tick.row.key]))
        else:
            wanted.append(tick)
            if _minds_overlaps(tick):
                going[tick.row.key] = "that was enqueued at the same time"
    alone = None if order.pk is None else order.now
    return [*hand_in(database, wanted, alone=alone), *left_out]


def _without_what_has_run(database: str, ticks: Sequence[Tick]) -> list[Tick]:
    # A cursor can be set back: by hand, or with a key that is given again.
    found = RecurringExecution.objects.using(database).filter(
        task_key__in={each.row.key for each in ticks},
        run_at__in={each.run_at for each in ticks},
    )
    known = set(found.values_list("task_key", "run_at"))
    return [each for each in ticks if each.instant not in known]


def _minds_overlaps(tick: Tick) -> bool:
    return tick.row.overlap == Overlap.SKIP


def _going(database: str, ticks: Sequence[Tick]) -> dict[str, str]:
    """The keys of recurring tasks with a run that is not over, and which that is."""
    if not ticks:
        return {}
    open_ones = RecurringExecution.objects.using(database).filter(
        task_key__in={each.row.key for each in ticks},
        outcome=Outcome.ENQUEUED,
        job_id__isnull=False,
    )
    pairs = open_ones.values_list("job_id", "task_key")
    runs = {job_id: key for job_id, key in pairs if job_id}
    places = standing(database, list(runs))
    return {
        runs[job_id]: f"of job {job_id}"
        for job_id, state in places.items()
        if state not in _ENDED
    }


def _overlapping(tick: Tick, run: str) -> RecurringExecution:
    reason = f"overlap: the run {run} was not over."
    return tick.entry(outcome=Outcome.SKIPPED, reason=reason)


def _write_down(database: str, entries: Sequence[RecurringExecution]) -> None:
    runs = [each for each in entries if each.job_id is not None]
    RecurringExecution.objects.using(database).bulk_create(runs)
    write_left_out(database, [each for each in entries if each.job_id is None])


def _move_on(database: str, judged: Sequence[tuple[RecurringTask, Verdict]]) -> None:
    """In one statement. What was due together mostly goes on together."""
    moved = defaultdict[datetime | None, list[int]](list)
    for row, verdict in judged:
        moved[verdict.next_run_at].append(row.pk)
    moves = [
        When(pk__in=ids, then=Value(following, DateTimeField()))
        for following, ids in moved.items()
    ]
    if moves:
        rows = RecurringTask.objects.using(database)
        rows = rows.filter(pk__in=[row.pk for row, _ in judged])
        rows.update(next_run_at=Case(*moves, default=F("next_run_at")))
