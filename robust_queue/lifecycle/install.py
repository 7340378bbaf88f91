"""Declarations ──▶ the table of recurring tasks, which every scheduler follows."""

import logging
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from robust_queue import aliases, recurrence
from robust_queue.arguments import dump_call
from robust_queue.models import RecurringTask
from robust_queue.recurrence import Recurrence
from robust_queue.stores.conflicts import retried

from .recur import kept_in, next_run

logger = logging.getLogger("robust_queue")


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
    """Bring the table in line with these declarations, and only these.

    A cursor stays where it is unless its schedule has changed. Rows that were not made
    from declarations are left alone. Several schedulers may do this at once.
    """
    moment = now or timezone.now()
    wanted = {each.key: each for each in recurrences}
    retried(database, partial(_install, database, wanted, moment))


def put_back(
    database: str, recurrences: Iterable[Recurrence], *, now: datetime | None = None
) -> None:
    """Add the declarations whose rows are gone, and change nothing else.

    While releases overlap, the older one removes what it does not know when it starts.
    """
    wanted = {each.key: each for each in recurrences}
    _add_missing(database, wanted, now or timezone.now())


def _install(database: str, wanted: dict[str, Recurrence], now: datetime) -> None:
    with transaction.atomic(using=database):
        _add_missing(database, wanted, now)
        concerned = RecurringTask.objects.using(database).filter(
            Q(static=True) | Q(key__in=wanted)
        )
        # In the same order everywhere, so that two schedulers do not block each other.
        for row in concerned.order_by("key"):
            if row.key not in wanted:
                RecurringTask.objects.using(database).filter(pk=row.pk).delete()
            elif row.static:
                _update(database, row, wanted[row.key], now)
            else:
                logger.warning(
                    "Recurring task %r of %s is not installed: there is one of that "
                    "key already, made at run time.",
                    row.key,
                    wanted[row.key].place,
                )


def _add_missing(database: str, wanted: dict[str, Recurrence], now: datetime) -> None:
    rows = RecurringTask.objects.using(database)
    known = set(rows.filter(key__in=wanted).values_list("key", flat=True))
    missing = [
        RecurringTask(
            key=key, next_run_at=next_run(each.schedule, now), **_columns(each)
        )
        for key, each in sorted(wanted.items())
        if key not in known
    ]
    # Whoever was quicker has added the same, or is brought in line like any other row.
    rows.bulk_create(missing, ignore_conflicts=True)


def _update(
    database: str, row: RecurringTask, wanted: Recurrence, now: datetime
) -> None:
    columns = _columns(wanted)
    changes = {n: value for n, value in columns.items() if getattr(row, n) != value}
    if "schedule" in changes or row.next_run_at is None:
        changes["next_run_at"] = next_run(wanted.schedule, now)
    if changes:
        # Who comes second must not set back a cursor that has moved on since.
        same = RecurringTask.objects.using(database).filter(
            pk=row.pk, schedule=row.schedule
        )
        same.update(**changes, updated_at=timezone.now())


def _columns(wanted: Recurrence) -> dict[str, Any]:
    return {
        "task_path": wanted.task.module_path,
        "schedule": wanted.schedule.text,
        "arguments": dump_call(wanted.args, wanted.kwargs),
        "queue_name": wanted.queue_name or "",
        "priority": wanted.priority,
    }


def _first_database() -> str | None:
    return next((each.database for each in aliases.backends()), None)
