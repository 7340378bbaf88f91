"""A schedule ──▶ jobs, one per instant, however many schedulers there are.

The cursor ``next_run_at`` is the instant that comes next. Whoever has locked the row
moves it on and makes the job, in the same transaction. What is recorded is the instant
of the schedule, never the clock at firing, so a clock that steps back repeats nothing.
"""

import logging
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from django.db import Error, connections, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from robust_queue import registry
from robust_queue.configuration import current
from robust_queue.models import RecurringExecution, RecurringTask
from robust_queue.models.recurring import SILENCE, Outcome, Overlap
from robust_queue.stores.conflicts import retried

from .hand_in import Tick, hand_in
from .left_out import entries_of, write_left_out
from .selection import standing
from .ticks import Verdict, decide

logger = logging.getLogger("robust_queue")

BATCH_SIZE = 500
_ENDED = ("finished", "failed")


def recur(
    database: str,
    *,
    now: datetime | None = None,
    declared: Collection[str] | None = None,
) -> int:
    """Enqueue every enabled recurring task that is due; return how many jobs.

    Of those that stand in code or settings only the ``declared`` ones, if that is said:
    what another release declares is left to that. A task that cannot be enqueued is
    logged, and its instant is over; one that is not known here may be known elsewhere,
    and is left to others for some minutes. An error of the database is raised, after
    the other tasks had their turn, and the instant stays due.
    """
    moment = now or timezone.now()
    due = _due(database, moment, declared)
    fired, is_full = 0, True
    while is_full:
        try:
            batch = _fire(database, due[:BATCH_SIZE], moment)
        except Error:
            if _is_out_of_reach(database):
                raise
            return fired + _one_by_one(database, due, moment)
        fired += batch.fired
        is_full = batch.taken == BATCH_SIZE
        due = due.exclude(pk__in=batch.left) if batch.left else due
    return fired


def next_instant(
    database: str, *, declared: Collection[str] | None = None
) -> datetime | None:
    """When the next recurring task is due; None if there is none. One statement."""
    rows = _enabled(database, declared).order_by("next_run_at")
    found: datetime | None = rows.values_list("next_run_at", flat=True).first()
    return found


def anything_made_at_run_time(database: str) -> bool:
    """Does anything recur that stands neither in code nor in the settings?"""
    return RecurringTask.objects.using(database).filter(static=False).exists()


def _enabled(
    database: str, declared: Collection[str] | None
) -> QuerySet[RecurringTask]:
    rows = RecurringTask.objects.using(database).filter(enabled=True)
    rows = rows.filter(next_run_at__isnull=False)
    if declared is None:
        return rows
    return rows.filter(Q(static=False) | Q(key__in=declared))


def _due(
    database: str, now: datetime, declared: Collection[str] | None
) -> QuerySet[RecurringTask]:
    due = _enabled(database, declared).filter(next_run_at__lte=now)
    return due.order_by("next_run_at", "pk")


# ── Firing ─────────────────────────────────────────────────────────────────────


class _Batch(NamedTuple):
    taken: int
    fired: int
    # Rows that were not ours to fire.
    left: list[int]


def _fire(
    database: str,
    due: QuerySet[RecurringTask],
    now: datetime,
    *,
    is_alone: bool = False,
) -> _Batch:
    return retried(database, partial(_take, database, due, now, is_alone=is_alone))


def _take(
    database: str, due: QuerySet[RecurringTask], now: datetime, *, is_alone: bool
) -> _Batch:
    """Lock rows, make the jobs of their instants, and move the cursors on."""
    with transaction.atomic(using=database):
        # Rows that another scheduler is about to fire are none of ours. Where nothing
        # can be locked there is one writer, and whoever comes second has to look again.
        features = connections[database].features
        skips = features.has_select_for_update_skip_locked
        taken = list(due.select_for_update(skip_locked=skips))
        rows = [row for row in taken if not _is_for_others(row, now)]
        judged = [(row, _judge(row, now)) for row in rows]
        ticks = [Tick(row, at) for row, verdict in judged for at in verdict.runs]
        entries = _made(database, ticks, is_alone=is_alone)
        skipped = [(row, each) for row, verdict in judged for each in verdict.skipped]
        _write_down(database, [*entries, *entries_of(database, skipped)])
        _move_on(database, judged)
    # What has become of an instant of another backend is not ours to tell.
    told = {Outcome.ENQUEUED, Outcome.HANDED_OVER}
    fired = sum(each.outcome in told for each in entries)
    left = {each.pk for each in taken} - {each.pk for each in rows}
    return _Batch(len(taken), fired, sorted(left))


def _is_for_others(row: RecurringTask, now: datetime) -> bool:
    """Does it name a task that another release may know, which is just being deployed?

    After some minutes nobody does, and the instant is over.
    """
    is_new = row.next_run_at is not None and now - row.next_run_at < SILENCE
    return is_new and registry.find(row.task_path) is None


def _judge(row: RecurringTask, now: datetime) -> Verdict:
    try:
        return decide(row, now=now, grace=current().recurring_grace)
    except ValueError:
        logger.exception("Recurring task %r has no sensible schedule.", row.key)
        at = row.next_run_at
        return Verdict(runs=[at] if at else [], next_run_at=None)


def _one_by_one(database: str, due: QuerySet[RecurringTask], now: datetime) -> int:
    """Find out whose error it was, so that only they have to suffer from it."""
    fired, trouble = 0, None
    for pk in list(due.values_list("pk", flat=True)):
        try:
            alone = due.filter(pk=pk)
            fired += _fire(database, alone, now, is_alone=True).fired
        except Error as error:
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
    database: str, ticks: Sequence[Tick], *, is_alone: bool
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
    return [*hand_in(database, wanted, is_alone=is_alone), *left_out]


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
    for row, verdict in judged:
        row.next_run_at = verdict.next_run_at
    moved = [row for row, _ in judged]
    RecurringTask.objects.using(database).bulk_update(moved, ["next_run_at"])
