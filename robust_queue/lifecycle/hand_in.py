"""An instant ──▶ a job, or the reason why there is none.

Jobs are written many at a time, in the transaction of the caller. What is wrong with
one task is found before, and keeps no other one from its job.
"""

import logging
import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import Error, InterfaceError, OperationalError, transaction

from robust_queue import registry
from robust_queue.aliases import database_of
from robust_queue.arguments import load_call
from robust_queue.compat import AnyTask
from robust_queue.declaration import Call
from robust_queue.exceptions import EnqueueError
from robust_queue.flow.concurrency import with_turn
from robust_queue.models import RecurringExecution, RecurringTask
from robust_queue.models.recurring import Outcome, Overlap
from robust_queue.stores.conflicts import is_conflict

from .enqueue import Prepared, write
from .recurred import marked
from .remit import is_given_up

logger = logging.getLogger("robust_queue")

REASON_LENGTH = 500


@dataclass(frozen=True, slots=True)
class Tick:
    """A recurring task, and one of its instants."""

    row: RecurringTask
    run_at: datetime
    by_hand: bool = False

    @property
    def instant(self) -> tuple[str, datetime]:
        return self.row.key, self.run_at

    def entry(self, **facts: Any) -> RecurringExecution:
        """What is written down of it."""
        return RecurringExecution(
            task_key=self.row.key, run_at=self.run_at, by_hand=self.by_hand, **facts
        )


def hand_in(
    database: str, ticks: Sequence[Tick], *, alone: datetime | None = None
) -> list[RecurringExecution]:
    """Enqueue the tasks of these instants; return what is to be written down.

    Together, an error of the database is raised: nobody can tell whose it was. Alone,
    and that is said by telling the time, one that would come again is the reason for
    which there is no job.
    """
    entries, together = [], list[tuple[Tick, Prepared]]()
    for tick in ticks:
        try:
            made = _prepared_or_handed_over(database, tick, is_alone=bool(alone))
            if isinstance(made, RecurringExecution):
                entries.append(made)
            elif alone or made.unique:
                entries.append(_enqueued_alone(database, tick, made))
            else:
                together.append((tick, made))
        except Exception as error:
            _raise_if_passing(error, tick, alone)
            entries.append(_refused(tick, error))
    _write_together([prepared for _, prepared in together])
    enqueued = (tick.entry(job_id=made.job.id) for tick, made in together)
    return [*entries, *enqueued]


def kept_in(task: AnyTask) -> str | None:
    """The database that holds the jobs of the task; None if another backend does."""
    return database_of(task.get_backend())


def _raise_if_passing(error: Exception, tick: Tick, alone: datetime | None) -> None:
    """Let the scheduler try again what the database may accept the next time.

    Together, every error of the database is one of the transaction, which is broken.
    Alone, some look as if they would pass and do not, such as a column that is missing.
    They have some minutes. By hand, whoever asked for it is told, and tries again.
    """
    cause = error.__cause__ if isinstance(error, EnqueueError) else error
    if not isinstance(cause, Error):
        return
    if alone is None or is_conflict(cause):
        raise cause
    may_pass = isinstance(cause, OperationalError | InterfaceError)
    if may_pass and (tick.by_hand or not is_given_up(tick.row, alone)):
        raise cause


# ── Jobs ───────────────────────────────────────────────────────────────────────


def _prepared_or_handed_over(
    database: str, tick: Tick, *, is_alone: bool
) -> Prepared | RecurringExecution:
    # Arguments and keys may be looked up in the database, in code of the project: an
    # error of that must not break the transaction of whoever is alone with it.
    with transaction.atomic(using=database) if is_alone else nullcontext():
        return _prepared(database, tick)


def _prepared(database: str, tick: Tick) -> Prepared | RecurringExecution:
    call = _call(tick)
    if kept_in(call.task) != database:
        return _handed_over(database, tick, call)
    backend: Any = call.task.get_backend()
    (prepared,) = backend.prepare_all([call])
    prepared.job = replace(prepared.job, **_marks(tick, prepared))
    made: Prepared = prepared
    return made


def _call(tick: Tick) -> Call:
    row, task = tick.row, registry.resolve(tick.row.task_path)
    if row.queue_name or row.priority is not None:
        task = task.using(queue_name=row.queue_name or None, priority=row.priority)
    if row.jitter and not tick.by_hand:
        task = task.using(run_after=tick.run_at + _delay(tick))
    args, kwargs = load_call(row.arguments)
    return Call(task, args, kwargs)


def _delay(tick: Tick) -> timedelta:
    # The same whichever scheduler it is that asks.
    chance = random.Random(f"{tick.row.key} {tick.run_at.isoformat()}")  # noqa: S311
    return timedelta(seconds=chance.uniform(0, tick.row.jitter))


def _marks(tick: Tick, prepared: Prepared) -> dict[str, str]:
    job, row = prepared.job, tick.row
    marks = {"metadata": marked(job.metadata, row.key)}
    if row.overlap == Overlap.QUEUE:
        marks["concurrency_key"] = with_turn(job.concurrency_key, row.key)
    return marks


def _write_together(prepared: Sequence[Prepared]) -> None:
    if not prepared:
        return
    try:
        write(prepared)
    except EnqueueError as error:
        # The error of the database tells whether it is worth while to try again.
        raise (error.__cause__ or error) from None


def _enqueued_alone(
    database: str, tick: Tick, prepared: Prepared
) -> RecurringExecution:
    # A failed enqueue must not undo what else is done in the transaction.
    with transaction.atomic(using=database):
        write([prepared])
    job_id = UUID(prepared.result.id)
    if job_id != prepared.job.id:
        reason = f"Job {job_id} of the same unique task is not over yet."
        return tick.entry(outcome=Outcome.SKIPPED, reason=reason)
    return tick.entry(job_id=job_id)


# ── No jobs ────────────────────────────────────────────────────────────────────


def _handed_over(database: str, tick: Tick, call: Call) -> RecurringExecution:
    """Leave it to another backend, which may be slow, or run the task at once.

    It has its turn when the instant is recorded, so that it is never asked twice,
    although perhaps not at all.
    """
    enqueue = partial(call.task.enqueue, *call.args, **call.kwargs)
    transaction.on_commit(partial(_hand_over, tick, enqueue), using=database)
    return tick.entry(outcome=Outcome.HANDED_OVER)


def _hand_over(tick: Tick, enqueue: Callable[[], object]) -> None:
    try:
        enqueue()
    except Exception as error:
        _log_failure(tick, error)


def _refused(tick: Tick, error: Exception) -> RecurringExecution:
    _log_failure(tick, error)
    reason = fitting(f"{type(error).__name__}: {error}")
    return tick.entry(outcome=Outcome.REFUSED, reason=reason)


def fitting(reason: str) -> str:
    """A reason as the column takes it."""
    readable = reason.replace("\0", "?").encode(errors="replace").decode()
    return readable[:REASON_LENGTH]


def _log_failure(tick: Tick, error: Exception) -> None:
    logger.error(
        "Recurring task %r could not be enqueued for %s.",
        tick.row.key,
        tick.run_at,
        exc_info=error,
    )
