"""A schedule ──▶ a job, once per instant, however many schedulers there are.

The cursor ``next_run_at`` is the instant that comes next. Whoever moves it on makes the
job, in the same transaction. What is recorded is the instant from the cursor, never the
clock at firing, so a clock that steps back repeats nothing.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import (
    Error,
    InterfaceError,
    OperationalError,
    connections,
    transaction,
)
from django.db.models import Min, QuerySet
from django.utils import timezone

from robust_queue import registry
from robust_queue.aliases import database_of
from robust_queue.arguments import load_call
from robust_queue.compat import AnyTask
from robust_queue.exceptions import EnqueueError
from robust_queue.models import RecurringExecution, RecurringTask
from robust_queue.schedules import Schedule
from robust_queue.stores.conflicts import retried

logger = logging.getLogger("robust_queue")


# ── Firing ─────────────────────────────────────────────────────────────────────


def recur(database: str, *, now: datetime | None = None) -> int:
    """Enqueue every enabled recurring task that is due; return how many.

    Instants that were missed since the last one are made up for by one run. A task that
    cannot be enqueued is logged and its instant is over. An error of the database is
    raised, after the other tasks had their turn, and the instant stays due.
    """
    moment = now or timezone.now()
    fired, trouble = 0, None
    for tick in _due(database, moment):
        try:
            fired += retried(database, partial(_fire, database, tick, moment))
        except Error as error:
            if _is_out_of_reach(database):
                raise
            trouble = trouble or error
    if trouble is not None:
        raise trouble
    return fired


def next_instant(database: str) -> datetime | None:
    """When the next recurring task is due; None if there is none."""
    found: datetime | None = _enabled(database).aggregate(at=Min("next_run_at"))["at"]
    return found


@dataclass(frozen=True, slots=True)
class _Tick:
    """A recurring task and the instant that its cursor had when it was read."""

    task: RecurringTask
    run_at: datetime


def _due(database: str, now: datetime) -> list[_Tick]:
    due = _enabled(database).filter(next_run_at__lte=now)
    rows = due.order_by("next_run_at", "pk")
    return [_Tick(row, row.next_run_at) for row in rows if row.next_run_at]


def _enabled(database: str) -> QuerySet[RecurringTask]:
    return RecurringTask.objects.using(database).filter(enabled=True)


def _fire(database: str, tick: _Tick, now: datetime) -> bool:
    """Move the cursor on and make the job of its instant: both or neither."""
    with transaction.atomic(using=database):
        if not _advance(database, tick, now) or _has_run(database, tick):
            return False
        try:
            # A failed enqueue must not undo the step of the cursor.
            with transaction.atomic(using=database):
                job_id = _enqueue(database, tick)
        except Exception as error:
            _raise_if_transient(error)
            _log_failure(tick, error)
            return False
        RecurringExecution.objects.using(database).create(
            task_key=tick.task.key, run_at=tick.run_at, job_id=job_id
        )
        return True


def _advance(database: str, tick: _Tick, now: datetime) -> bool:
    """Compare and set: of several schedulers one succeeds."""
    as_it_was_read = _enabled(database).filter(
        pk=tick.task.pk, next_run_at=tick.run_at, schedule=tick.task.schedule
    )
    return bool(as_it_was_read.update(next_run_at=_following(tick, now)))


def _following(tick: _Tick, now: datetime) -> datetime | None:
    try:
        # Behind the instant and the clock: what lies between was missed.
        return next_run(Schedule(tick.task.schedule), max(tick.run_at, now))
    except ValueError:
        logger.exception("Recurring task %r has no sensible schedule.", tick.task.key)
        return None


def _has_run(database: str, tick: _Tick) -> bool:
    # A cursor can be set back, by a change of the schedule there and back again.
    executions = RecurringExecution.objects.using(database)
    return executions.filter(task_key=tick.task.key, run_at=tick.run_at).exists()


def _enqueue(database: str, tick: _Tick) -> UUID | None:
    """Make the job; return its id if this database keeps it.

    Another backend may be slow, or run the task at once. It has its turn when the
    instant is recorded, so that it is never asked twice, although perhaps not at all.
    """
    row = tick.task
    task = registry.resolve(row.task_path).using(
        queue_name=row.queue_name or None, priority=row.priority
    )
    args, kwargs = load_call(row.arguments)
    if kept_in(task) == database:
        job_id = UUID(task.enqueue(*args, **kwargs).id)
        return None if _is_anothers(database, task, job_id) else job_id
    hand_over = partial(_hand_over, tick, partial(task.enqueue, *args, **kwargs))
    transaction.on_commit(hand_over, using=database)
    return None


def _is_anothers(database: str, task: AnyTask, job_id: UUID) -> bool:
    """Is it the job of another instant, which a unique task was still at?"""
    executions = RecurringExecution.objects.using(database)
    is_unique = getattr(task, "unique", None) is not None
    return is_unique and executions.filter(job_id=job_id).exists()


def _hand_over(tick: _Tick, enqueue: Callable[[], object]) -> None:
    try:
        enqueue()
    except Exception as error:
        _log_failure(tick, error)


def _log_failure(tick: _Tick, error: Exception) -> None:
    logger.error(
        "Recurring task %r could not be enqueued for %s.",
        tick.task.key,
        tick.run_at,
        exc_info=error,
    )


def _raise_if_transient(error: Exception) -> None:
    """Let the scheduler try again what the database may accept the next time."""
    cause = error.__cause__ if isinstance(error, EnqueueError) else error
    if isinstance(cause, OperationalError | InterfaceError):
        raise cause


def _is_out_of_reach(database: str) -> bool:
    connection = connections[database]
    return connection.connection is None or not connection.is_usable()


def next_run(schedule: Schedule, moment: datetime) -> datetime:
    """The first instant after the moment, both as the project stores moments."""
    zone = timezone.get_default_timezone()
    instant = moment if settings.USE_TZ else timezone.make_aware(moment, zone)
    while True:
        instant = schedule.next_after(instant, zone)
        stored = instant if settings.USE_TZ else timezone.make_naive(instant, zone)
        # Without a zone an hour that the clock shows twice would look like the past.
        if stored > moment:
            return stored


def kept_in(task: AnyTask) -> str | None:
    """The database that holds the jobs of the task; None if another backend does."""
    return database_of(task.get_backend())
