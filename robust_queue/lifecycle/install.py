"""Declarations ──▶ the table of recurring tasks, which every scheduler follows.

Several releases may run side by side, each with a scheduler that declares other tasks.
Whoever starts last has its way where two declare the same key differently. From then on
each says every minute or two which rows are as it declares them: a row that nobody
speaks for any more is brought in line by those who declare its key, and is retired if
nobody does.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connections, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from robust_queue import aliases, recurrence
from robust_queue.arguments import dump_call
from robust_queue.backoffs import LONGEST_DELAY
from robust_queue.configuration import current
from robust_queue.fields import UtcField
from robust_queue.models import RecurringTask
from robust_queue.models.processes import DatabaseNow
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
    _bring_in_line(database, recurrences, now, has_priority=True)


def reaffirm(
    database: str, recurrences: Iterable[Recurrence], *, now: datetime | None = None
) -> None:
    """Say which rows are as declared here, and look after those nobody speaks for.

    Whoever has locked a row is not waited for: there is a next time.
    """
    _bring_in_line(database, recurrences, now, has_priority=False)


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
    now: datetime | None,
    *,
    has_priority: bool,
) -> None:
    wanted = {each.key: each for each in recurrences}
    rows = {row.key: row for row in _concerned(database, wanted)}
    now = now or _time_of(rows.values())
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
            same.append(row.pk)
        elif has_priority or row.retired_at or _is_silent(row, now):
            _update(database, row, wanted[key], now, waits=has_priority)
    if same:
        _change_free(database, Q(pk__in=same), declared_at=now)


def _concerned(
    database: str, wanted: Mapping[str, Recurrence]
) -> QuerySet[RecurringTask]:
    rows = RecurringTask.objects.using(database)
    rows = rows.filter(Q(static=True) | Q(key__in=wanted))
    return rows.annotate(read_at=DatabaseNow(output_field=UtcField()))


def _time_of(rows: Iterable[Any]) -> datetime:
    """When rows were read, by the one clock that all hosts share."""
    read_at: datetime = next((row.read_at for row in rows), timezone.now())
    return read_at


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


def _free(database: str, which: Q) -> QuerySet[RecurringTask]:
    """Rows that nobody else has locked, to be locked."""
    skips = connections[database].features.has_select_for_update_skip_locked
    rows = RecurringTask.objects.using(database)
    return rows.select_for_update(skip_locked=skips).filter(which)


def _change_free(database: str, which: Q, **changes: Any) -> int:
    """Change those of the rows that nobody else has locked; return how many."""

    def change() -> int:
        with transaction.atomic(using=database):
            ids = list(_free(database, which).values_list("pk", flat=True))
            rows = RecurringTask.objects.using(database).filter(pk__in=ids)
            return rows.update(**changes)

    return retried(database, change)


def _is_in_line(row: RecurringTask, wanted: Recurrence) -> bool:
    is_alive = row.retired_at is None and row.next_run_at is not None
    return is_alive and not any(_changes(row, wanted))


def _changes(row: RecurringTask, wanted: Recurrence) -> Iterator[str]:
    for name, value in columns_of(wanted).items():
        if getattr(row, name) != value:
            yield name


def _update(
    database: str,
    row: RecurringTask,
    wanted: Recurrence,
    now: datetime,
    *,
    waits: bool = True,
) -> None:
    # Locked, for its cursor must not move meanwhile; and whoever comes second, and has
    # read what is not so any more, must not set it back.
    same = Q(pk=row.pk, schedule=row.schedule, timezone=row.timezone)
    rows = RecurringTask.objects.using(database).select_for_update().filter(same)

    def change() -> None:
        with transaction.atomic(using=database):
            locked = (rows if waits else _free(database, same)).first()
            if locked is not None:
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
        pass_over(database, row, now=now, reason=_reason(row, was_enabled=was_enabled))
        row.next_run_at = first_run(wanted, now)
    elif row.enabled and not was_enabled:
        row.next_run_at = pass_over(database, row, now=now, reason="disabled")
    for name, value in columns_of(wanted).items():
        setattr(row, name, value)
    row.declared_at, row.retired_at = now, None
    row.save(using=database)


def _reason(row: RecurringTask, *, was_enabled: bool) -> str:
    if row.retired_at is not None:
        return "retired"
    return "rescheduled" if was_enabled else "disabled"


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
    same = Q(pk=row.pk, declared_at=row.declared_at, retired_at=row.retired_at)
    if row.retired_at is not None:
        if row.retired_at < now - _at_most(current().clear_recurring_executions_after):
            rows = RecurringTask.objects.using(database)
            retried(database, rows.filter(same).delete)
    elif row.declared_at is None:
        # Made by a release that did not say so: from now on the time counts.
        _change_free(database, same, declared_at=now)
    elif _is_to_retire(row.declared_at, now):
        _retire(database, row, same, now)


def _is_to_retire(declared_at: datetime, now: datetime) -> bool:
    patience = max(_at_most(current().retire_recurring_tasks_after), SILENCE)
    return declared_at < now - patience


def _at_most(age: timedelta) -> timedelta:
    # Longer is for ever: no database has moments that old.
    return min(age, LONGEST_DELAY)


def _retire(database: str, row: RecurringTask, same: Q, now: datetime) -> None:
    # The cursor stays: should it come back, it is known which instants it has missed.
    if _change_free(database, same, retired_at=now):
        logger.warning(
            "Recurring task %r is retired: nobody has declared it since %s.",
            row.key,
            row.declared_at,
        )
