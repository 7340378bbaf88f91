"""What recurs, as people change it while schedulers run: made, changed, paused, gone.

Schedulers look at the table every few seconds, so that nobody has to tell them.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.utils import timezone

from robust_queue import registry
from robust_queue.compat import AnyTask
from robust_queue.exceptions import RecurringKeyTakenError, RecurringTaskError
from robust_queue.models import RecurringExecution, RecurringTask
from robust_queue.models.recurring import Outcome
from robust_queue.recurrence import Recurrence, recurrence_of
from robust_queue.stores.conflicts import retried

from .hand_in import Tick, hand_in, kept_in
from .install import columns_of, first_run
from .left_out import pass_over
from .ticks import LEAST

R = TypeVar("R")

_PAUSED = "paused"


def schedule(
    database: str,
    key: str,
    task: AnyTask | str,
    *,
    replace: bool = False,
    **options: Any,
) -> RecurringTask:
    """Have a declared task recur from now on; everything is checked before.

    A key that is taken raises ``RecurringTaskError``, unless what has it was made at
    run time as well and is to be replaced. Its history stays.
    """
    declared = registry.resolve(task) if isinstance(task, str) else task
    wanted = recurrence_of(declared, key=key, **options)
    _check_home(database, wanted)
    change = partial(_put, database, wanted, replaces=replace)
    return retried(database, change)


def unschedule(database: str, key: str) -> None:
    """Have a task that was scheduled at run time recur no longer. Its history stays."""

    def delete() -> None:
        with transaction.atomic(using=database):
            row = _locked(database, key)
            if row.static and row.retired_at is None:
                raise RecurringTaskError(
                    f"Recurring task {key!r} is declared in code or settings: it would "
                    "come back. Take it out there, or pause it."
                )
            row.delete(using=database)

    retried(database, delete)


def pause(database: str, key: str) -> bool:
    """Let its instants pass; False if it is paused already."""
    return _locking(database, key, _pause)


def resume(database: str, key: str) -> bool:
    """Go on with the next instant; False if it was not paused.

    Those that have passed meanwhile were meant to: they are recorded as skipped.
    """
    return _locking(database, key, _resume)


def run_now(database: str, key: str) -> RecurringExecution:
    """Enqueue it at once, whatever its schedule says and whether it is paused or not.

    Returns what was written down: a job that could not be made raises its error.
    """
    row = _found(RecurringTask.objects.using(database).filter(key=key).first(), key)

    def enqueue() -> RecurringExecution:
        with transaction.atomic(using=database):
            tick = Tick(row, _moment_of_nobody(), by_hand=True)
            (entry,) = hand_in(database, [tick], alone=tick.run_at)
            if entry.outcome in {Outcome.REFUSED, Outcome.SKIPPED}:
                refusal = f"Recurring task {key!r} was not enqueued"
                raise RecurringTaskError(
                    f"{refusal}: {entry.reason}",
                    discreet=f"{refusal}: {entry.discreet_reason}",
                )
            entry.save(using=database)
        return entry

    return retried(database, enqueue)


def _moment_of_nobody() -> datetime:
    """Now, but never one of the instants that schedules have: those are whole."""
    now = timezone.now()
    return now if now.microsecond else now + LEAST


def _check_home(database: str, wanted: Recurrence) -> None:
    home = kept_in(wanted.task)
    if home is not None and home != database:
        raise RecurringTaskError(
            f"{wanted.task.module_path} keeps its jobs in database {home!r}: schedule "
            "it there."
        )


# ── Rows ───────────────────────────────────────────────────────────────────────


def _put(
    database: str, wanted: Recurrence, *, replaces: bool, is_second: bool = False
) -> RecurringTask:
    rows = RecurringTask.objects.using(database)
    try:
        with transaction.atomic(using=database):
            row = rows.select_for_update().filter(key=wanted.key).first()
            if row is None:
                return rows.create(
                    key=wanted.key,
                    static=False,
                    enabled=wanted.enabled,
                    next_run_at=first_run(wanted, timezone.now()),
                    **columns_of(wanted),
                )
            _check_replaceable(row, replaces=replaces)
            return _replaced(database, row, wanted)
    except IntegrityError:
        if is_second:
            raise
        # Somebody was quicker with the key, and is seen now.
        return _put(database, wanted, replaces=replaces, is_second=True)


def _replaced(database: str, row: RecurringTask, wanted: Recurrence) -> RecurringTask:
    """Another definition under the same key; the cursor stays if the times do."""
    now, was_enabled = timezone.now(), row.enabled
    columns = columns_of(wanted)
    has_new_times = (row.schedule, row.timezone) != (
        columns["schedule"],
        columns["timezone"],
    )
    if has_new_times or not was_enabled or row.next_run_at is None:
        reason = "rescheduled" if was_enabled else _PAUSED
        pass_over(database, row, now=now, reason=reason)
        row.next_run_at = first_run(wanted, now)
    for name, value in columns.items():
        setattr(row, name, value)
    row.static, row.retired_at, row.enabled = False, None, wanted.enabled
    row.save(using=database)
    return row


def _check_replaceable(row: RecurringTask, *, replaces: bool) -> None:
    if row.static and row.retired_at is None:
        raise RecurringTaskError(
            f"Recurring task {row.key!r} is declared in code or settings, and changed "
            "there."
        )
    if not replaces and row.retired_at is None:
        raise _taken(row.key)


def _taken(key: str) -> RecurringKeyTakenError:
    return RecurringKeyTakenError(
        f"There is a recurring task {key!r} already: give replace=True to change it."
    )


def _locking(database: str, key: str, change: Callable[[str, RecurringTask], R]) -> R:
    def locked() -> R:
        with transaction.atomic(using=database):
            return change(database, _locked(database, key))

    return retried(database, locked)


def _locked(database: str, key: str) -> RecurringTask:
    rows = RecurringTask.objects.using(database).select_for_update()
    return _found(rows.filter(key=key).first(), key)


def _found(row: RecurringTask | None, key: str) -> RecurringTask:
    if row is None:
        raise RecurringTaskError(f"There is no recurring task {key!r}.")
    return row


def _pause(database: str, row: RecurringTask) -> bool:
    was_enabled = row.enabled
    row.enabled = False
    row.save(using=database, update_fields=["enabled", "updated_at"])
    return was_enabled


def _resume(database: str, row: RecurringTask) -> bool:
    if row.enabled:
        return False
    row.enabled = True
    following = pass_over(database, row, now=timezone.now(), reason=_PAUSED)
    if following is None:
        raise RecurringTaskError(
            f"Recurring task {row.key!r} has the schedule {row.schedule!r} in the time "
            f"zone {row.timezone!r}, which nobody understands here."
        )
    row.next_run_at = following
    row.save(using=database, update_fields=["enabled", "next_run_at", "updated_at"])
    return True
