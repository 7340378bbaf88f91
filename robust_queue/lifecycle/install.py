"""Declarations ──▶ the table of recurring tasks, which every scheduler follows.

Several releases may run side by side, each with a scheduler that declares other tasks.
Whoever starts last has its way where two declare the same key differently. From then on
each says every minute which rows are as it declares them: a row that nobody speaks for
any more is brought in line by those who declare its key, and is retired if nobody does.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from robust_queue import aliases, recurrence
from robust_queue.arguments import dump_call
from robust_queue.configuration import current
from robust_queue.models import RecurringTask
from robust_queue.models.recurring import SILENCE
from robust_queue.recurrence import Recurrence
from robust_queue.stores.conflicts import retried

from .hand_in import kept_in
from .left_out import pass_over
from .ticks import timeline_of

logger = logging.getLogger("robust_queue")

# A change of these is one of the instants.
_TIMES = {"schedule", "timezone"}


def recurrences_of(database: str) -> list[Recurrence]:
    """What is declared and belongs to the scheduler of this database.

    A task belongs where its backend keeps its jobs. Tasks of other backends belong to
    the first database of a queue, in the order of ``TASKS``.
    """
    return [
        each
        for each in recurrence.declared()
        if (kept_in(each.task) or _first_database()) == database
    ]


def install(
    database: str, recurrences: Iterable[Recurrence], *, now: datetime | None = None
) -> None:
    """Bring the rows of these declarations in line with them, at the start.

    A cursor stays where it is unless its schedule has changed. Rows that were not made
    from declarations are left alone, and so are those that others may declare. Several
    schedulers may do this at once.
    """
    _bring_in_line(database, recurrences, now or timezone.now(), has_priority=True)


def reaffirm(
    database: str, recurrences: Iterable[Recurrence], *, now: datetime | None = None
) -> None:
    """Say which rows are as declared here, and look after those nobody speaks for."""
    _bring_in_line(database, recurrences, now or timezone.now(), has_priority=False)


def columns_of(wanted: Recurrence) -> dict[str, Any]:
    """What a row says about it."""
    return {
        "task_path": wanted.task.module_path,
        "schedule": wanted.schedule.text,
        "timezone": wanted.timezone or "",
        "arguments": dump_call(wanted.args, wanted.kwargs),
        "queue_name": wanted.queue_name or "",
        "priority": wanted.priority,
        "description": wanted.description,
        "on_missed": wanted.on_missed,
        "missed_limit": wanted.missed_limit,
        "overlap": wanted.overlap,
        "jitter": int(wanted.jitter.total_seconds()),
        "declared_enabled": wanted.enabled,
    }


def first_run(wanted: Recurrence, now: datetime) -> datetime:
    """The first instant from now on."""
    return timeline_of(wanted.schedule, wanted.timezone).after(now)


def _first_database() -> str | None:
    return next((each.database for each in aliases.backends()), None)


# ── Rows of declarations ───────────────────────────────────────────────────────


def _bring_in_line(
    database: str,
    recurrences: Iterable[Recurrence],
    now: datetime,
    *,
    has_priority: bool,
) -> None:
    wanted = {each.key: each for each in recurrences}
    rows = {row.key: row for row in _concerned(database, wanted)}
    if missing := wanted.keys() - rows.keys():
        _add(database, [wanted[key] for key in sorted(missing)], now)
    same = []
    # In the same order everywhere, so that two schedulers do not block each other.
    for key, row in sorted(rows.items()):
        if key not in wanted:
            _look_after_stranger(database, row, now)
        elif not row.static:
            _warn_of_dynamic(row, wanted[key], is_new=has_priority)
        elif _is_in_line(row, wanted[key]):
            same.append(row)
        elif has_priority or _is_silent(row, now):
            _update(database, row, wanted[key], now)
    _speak_for(database, same, now)


def _concerned(
    database: str, wanted: Mapping[str, Recurrence]
) -> QuerySet[RecurringTask]:
    rows = RecurringTask.objects.using(database)
    return rows.filter(Q(static=True) | Q(key__in=wanted))


def _add(database: str, missing: list[Recurrence], now: datetime) -> None:
    rows = [
        RecurringTask(
            key=each.key,
            enabled=each.enabled,
            next_run_at=first_run(each, now),
            declared_at=now,
            **columns_of(each),
        )
        for each in missing
    ]
    # Whoever was quicker has added the same, or is brought in line like any other row.
    RecurringTask.objects.using(database).bulk_create(rows, ignore_conflicts=True)


def _is_in_line(row: RecurringTask, wanted: Recurrence) -> bool:
    is_alive = row.retired_at is None and row.next_run_at is not None
    return is_alive and not any(_changes(row, wanted))


def _changes(row: RecurringTask, wanted: Recurrence) -> Iterator[str]:
    for name, value in columns_of(wanted).items():
        if getattr(row, name) != value:
            yield name


def _update(
    database: str, row: RecurringTask, wanted: Recurrence, now: datetime
) -> None:
    # Locked, for its cursor must not move meanwhile; and whoever comes second, and has
    # read what is not so any more, must not set it back.
    rows = RecurringTask.objects.using(database).select_for_update()
    same = rows.filter(pk=row.pk, schedule=row.schedule, timezone=row.timezone)

    def change() -> None:
        with transaction.atomic(using=database):
            if (locked := same.first()) is not None:
                _bring_in(database, locked, wanted, now)

    retried(database, change)


def _bring_in(
    database: str, row: RecurringTask, wanted: Recurrence, now: datetime
) -> None:
    changes = set(_changes(row, wanted))
    was_enabled = row.enabled
    if "declared_enabled" in changes:
        # Else it stays as an operator has left it.
        row.enabled = wanted.enabled
    if _TIMES & changes or row.retired_at or row.next_run_at is None:
        reason = "rescheduled" if was_enabled else "disabled"
        pass_over(database, row, now=now, reason=reason)
        row.next_run_at = first_run(wanted, now)
    elif row.enabled and not was_enabled:
        row.next_run_at = pass_over(database, row, now=now, reason="disabled")
    for name, value in columns_of(wanted).items():
        setattr(row, name, value)
    row.declared_at, row.retired_at = now, None
    row.save(using=database)


def _speak_for(database: str, rows: list[RecurringTask], now: datetime) -> None:
    if rows:
        spoken_for = RecurringTask.objects.using(database)
        spoken_for = spoken_for.filter(pk__in=[row.pk for row in rows])
        retried(database, partial(spoken_for.update, declared_at=now))


def _warn_of_dynamic(row: RecurringTask, wanted: Recurrence, *, is_new: bool) -> None:
    if is_new:
        logger.warning(
            "Recurring task %r of %s is not installed: there is one of that key "
            "already, made at run time.",
            row.key,
            wanted.place,
        )


# ── Rows of somebody else, or of nobody ────────────────────────────────────────


def _is_silent(row: RecurringTask, now: datetime) -> bool:
    return row.declared_at is None or row.declared_at < now - SILENCE


def _look_after_stranger(database: str, row: RecurringTask, now: datetime) -> None:
    """Retire what nobody has declared for long enough. It stays to be seen."""
    rows = RecurringTask.objects.using(database)
    same = rows.filter(pk=row.pk, declared_at=row.declared_at)
    if row.retired_at is not None:
        if row.retired_at < now - current().clear_recurring_executions_after:
            retried(database, same.filter(retired_at=row.retired_at).delete)
    elif row.declared_at is None:
        # Made by a release that did not say so: from now on the time counts.
        retried(database, partial(same.update, declared_at=now))
    elif row.declared_at < now - max(current().retire_recurring_tasks_after, SILENCE):
        retired = partial(same.update, retired_at=now, next_run_at=None)
        if retried(database, retired):
            _tell_of_retirement(row)


def _tell_of_retirement(row: RecurringTask) -> None:
    logger.warning(
        "Recurring task %r is retired: nobody has declared it since %s.",
        row.key,
        row.declared_at,
    )
