"""Ready ──▶ blocked again, for the sake of somebody who can make use of its slot.

A job has its slot from the moment it is ready. If its queue is paused, or nobody serves
it, it would keep those of other queues waiting for ever. When it has had the slot for
as long as its ``duration``, the next one of another queue has it instead, and it stands
behind everybody else who waits. Jobs that have begun are never concerned.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple, TypeVar
from uuid import UUID

from django.db import connections, transaction
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.utils import timezone

from robust_queue import registry
from robust_queue.flow.keys import SEPARATOR
from robust_queue.models import BlockedExecution, Job, Pause, ReadyExecution, Semaphore
from robust_queue.models.queues import in_force
from robust_queue.stores.conflicts import retried
from robust_queue.stores.records import BEHIND

from .admit import duration_of
from .wake import wake

BATCH = 100
# Of a paused queue, so many jobs are looked at: those that came first.
LOOKED_AT = 2_000

T = TypeVar("T", bound=Model)


class Idle(NamedTuple):
    """A job that may have had a slot of this key for too long."""

    job_id: UUID
    key: str


def give_way(database: str) -> int:
    """Hand on slots that nobody has made use of for too long; return how many."""
    idle = dict.fromkeys([*_latest_holders(database), *_of_paused_queues(database)])
    queues = [retried(database, partial(_hand_on, database, each)) for each in idle]
    handed = [queue for queue in queues if queue]
    if handed:
        wake(database, set(handed))
    return len(handed)


def _latest_holders(database: str) -> Iterator[Idle]:
    """Of keys of which no slot has changed hands for long: who took one last."""
    waiting = BlockedExecution.objects.filter(concurrency_key=OuterRef("key"))
    overdue = Semaphore.objects.using(database).filter(
        Exists(waiting), expires_at__lt=timezone.now(), value__lte=0
    )
    for key, holder in overdue.values_list("key", "holder_id")[:BATCH]:
        if holder is not None:
            yield Idle(holder, key)


def _of_paused_queues(database: str) -> Iterator[Idle]:
    """Who has a slot in a queue that gives out no work, however busy its key is."""
    now = timezone.now()
    pauses = Pause.objects.using(database).filter(in_force(now))
    for queue in pauses.values_list("queue_name", flat=True):
        ready = ReadyExecution.objects.using(database).filter(queue_name=queue)
        facts = ready.order_by("priority", "job").values_list(
            "pk", "job__concurrency_key", "job__task_path", "created_at"
        )
        for job_id, key, path, since in facts[:LOOKED_AT]:
            if key and since + duration_of(registry.find(path)) < now:
                yield Idle(job_id, key)


def _hand_on(database: str, idle: Idle) -> str:
    """Let the next one of another queue have the slot; return its queue, if any."""
    if SEPARATOR in idle.key:
        return ""  # it has several, and all of them would change hands
    with transaction.atomic(using=database):
        # One that is being claimed at this moment is locked, and not idle.
        ready = _locking(ReadyExecution.objects.using(database))
        holder = ready.filter(pk=idle.job_id, job__concurrency_key=idle.key).first()
        successor = _successor(database, idle.key, holder) if holder else None
        if holder is None or successor is None:
            _look_later(database, idle)
            return ""
        _change_places(database, idle.key, holder, successor)
        _look_later(database, Idle(successor.pk, idle.key))
        return str(successor.queue_name)


def _successor(
    database: str, key: str, holder: ReadyExecution
) -> BlockedExecution | None:
    blocked = _locking(BlockedExecution.objects.using(database))
    line = blocked.filter(concurrency_key=key, other_keys="", priority__lt=BEHIND // 2)
    others = line.exclude(queue_name=holder.queue_name)
    return others.order_by("priority", "job").first()


def _change_places(
    database: str, key: str, holder: ReadyExecution, successor: BlockedExecution
) -> None:
    now = timezone.now()
    BlockedExecution.objects.using(database).create(
        concurrency_key=key,
        created_at=now,
        **{**_facts(holder), "priority": holder.priority + BEHIND},
    )
    ReadyExecution.objects.using(database).create(
        partition_key=Job.objects.using(database).get(pk=successor.pk).partition_key,
        created_at=now,
        **_facts(successor),
    )
    ReadyExecution.objects.using(database).filter(pk=holder.pk).delete()
    BlockedExecution.objects.using(database).filter(pk=successor.pk).delete()


def _facts(row: ReadyExecution | BlockedExecution) -> dict[str, object]:
    names = ("job_id", "queue_name", "priority", "attempts")
    return {name: getattr(row, name) for name in names}


def _look_later(database: str, idle: Idle) -> None:
    """Not before this one, too, has had its time."""
    paths = Job.objects.using(database).filter(pk=idle.job_id)
    task = registry.find(paths.values_list("task_path", flat=True).first() or "")
    Semaphore.objects.using(database).filter(pk=idle.key).update(
        holder_id=idle.job_id, expires_at=timezone.now() + duration_of(task)
    )


def _locking(rows: "QuerySet[T]") -> "QuerySet[T]":
    """Rows that nobody else has locked, where a database can tell."""
    features = connections[rows.db].features
    return rows.select_for_update(
        skip_locked=features.has_select_for_update_skip_locked,
        of=("self",) if features.has_select_for_update_of else (),
    )
