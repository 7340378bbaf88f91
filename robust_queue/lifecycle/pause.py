"""A queue that gives out work ◀──▶ one that gives out none. Running jobs go on."""

from functools import partial

from django.db import IntegrityError, transaction
from django.dispatch import Signal

from robust_queue.models import Pause
from robust_queue.signals import queue_paused, queue_resumed, tell
from robust_queue.stores.conflicts import retried

from .names import check_queue_name
from .wake import wake


def pause(database: str, queue_name: str) -> bool:
    """Give out no work of this queue from the next poll on; False if it is so already.

    Jobs can still be enqueued there; those that a worker has are not interrupted.
    """
    check_queue_name(queue_name)
    is_new = retried(database, lambda: _insert(database, queue_name))
    if is_new:
        _tell(queue_paused, database, queue_name)
    return is_new


def resume(database: str, queue_name: str) -> bool:
    """Give out the work of a paused queue again; False if it was not paused."""
    check_queue_name(queue_name)
    paused = Pause.objects.using(database).filter(pk=queue_name)
    deleted, _ = retried(database, paused.delete)
    if deleted:
        wake(database, [queue_name])
        _tell(queue_resumed, database, queue_name)
    return bool(deleted)


def _insert(database: str, queue_name: str) -> bool:
    try:
        # A block of its own: on PostgreSQL the refusal would break the caller's.
        with transaction.atomic(using=database):
            Pause.objects.using(database).create(queue_name=queue_name)
    except IntegrityError:
        return False
    return True


def _tell(signal: Signal, database: str, queue_name: str) -> None:
    telling = partial(tell, signal, Pause, queue_name=queue_name, database=database)
    transaction.on_commit(telling, using=database, robust=True)
