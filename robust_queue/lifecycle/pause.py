"""A queue that gives out work ◀──▶ one that gives out none. Running jobs go on.

A pause may have an end. Polls heed it by themselves; that the row is gone, and somebody
told, is up to a sweep.
"""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.dispatch import Signal
from django.utils import timezone

from robust_queue.models import Pause
from robust_queue.models.queues import over
from robust_queue.signals import queue_paused, queue_resumed, tell
from robust_queue.stores.conflicts import retried

from .moments import in_future
from .names import check_queue_name
from .wake import wake


def pause(
    database: str, queue_name: str, *, until: datetime | timedelta | None = None
) -> bool:
    """Give out no work of this queue from the next poll on; False if it is so already.

    Jobs can still be enqueued there; those that a worker has are not interrupted. The
    pause lasts until that moment, or for so long, or until somebody resumes the queue.
    What is said last counts: an end may be put off, brought forward, and taken away.
    """
    check_queue_name(queue_name)
    end = None if until is None else in_future(until)
    _end_if_over(database, queue_name)
    is_new = retried(database, partial(_write, database, queue_name, end))
    if is_new:
        _tell(queue_paused, database, queue_name)
    return is_new


def resume(database: str, queue_name: str) -> bool:
    """Give out the work of a paused queue again; False if it was not paused."""
    check_queue_name(queue_name)
    _end_if_over(database, queue_name)
    rows = Pause.objects.using(database).filter(pk=queue_name)
    return _end(database, queue_name, rows)


def end_pauses(database: str) -> datetime | None:
    """Take away the pauses that are over, and tell; return when the next one will be.

    Several may do this at once: of each pause one of them tells.
    """
    pauses = Pause.objects.using(database).exclude(until=None).order_by("until")
    ends: list[Any] = list(pauses.values_list("queue_name", "until"))
    now = timezone.now()
    for name, until in ends:
        if until <= now:
            _end_if_over(database, name)
    return min((until for _, until in ends if until > now), default=None)


def _end_if_over(database: str, queue_name: str) -> bool:
    rows = Pause.objects.using(database).filter(pk=queue_name)
    return _end(database, queue_name, rows.filter(over(timezone.now())))


def _end(database: str, queue_name: str, rows: Any) -> bool:
    # In one statement: what was read before may have been put off since. And who has
    # deleted the row is the one to tell of it.
    is_ended = bool(retried(database, lambda: rows._raw_delete(database)))
    if is_ended:
        wake(database, [queue_name])
        _tell(queue_resumed, database, queue_name)
    return is_ended


def _write(database: str, queue_name: str, end: datetime | None) -> bool:
    """Write the row, or its new end if there is one; tell whether there was none."""
    rows = Pause.objects.using(database)
    while True:
        try:
            # A block of its own: on PostgreSQL the refusal would break the caller's.
            with transaction.atomic(using=database):
                rows.create(queue_name=queue_name, until=end)
        except IntegrityError:
            if rows.filter(pk=queue_name).update(until=end):
                return False
            # Somebody has resumed it in between.
        else:
            return True


def _tell(signal: Signal, database: str, queue_name: str) -> None:
    telling = partial(tell, signal, Pause, queue_name=queue_name, database=database)
    transaction.on_commit(telling, using=database, robust=True)
