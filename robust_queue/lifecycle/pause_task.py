"""A task whose jobs are begun ◀──▶ one of which none is, whatever its queue.

Polls know queues, not tasks. So a job of a paused task is met by the worker that claims
it, and set aside: it is scheduled for a moment that never comes, as if it had not been
claimed. When the pause is over it is made due, and goes the way of all scheduled jobs.

The row of the pause keeps order between the two. Who sets aside holds its lock and sees
the pause in force; who brings back holds it too, and deletes the row only together with
the last of the jobs. So none is set aside behind the last look, and a resume that dies
halfway leaves a row that is over, which the sweep goes on with.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from zlib import crc32

from django.db import IntegrityError, transaction
from django.utils import timezone

from robust_queue.models import ScheduledExecution, TaskPause
from robust_queue.models.queues import in_force, over
from robust_queue.stores.conflicts import retried
from robust_queue.stores.rows import Claim

from .admit import promote_keys
from .moments import as_stored, in_future
from .selection import BATCH_SIZE
from .send_away import sent_away
from .settle import settle_only

PATH_LENGTH = 255
# Behind every moment for which somebody would schedule a job.
_ASIDE = datetime(9000, 1, 1, tzinfo=UTC)
# What was resumed is over by the clock of every host.
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def pause_task(
    database: str, task_path: str, *, until: datetime | timedelta | None = None
) -> bool:
    """Begin no job of this task from now on; False if it is so already.

    Workers know of it about a second later. What runs goes on. Until that moment, or
    for so long, or until somebody resumes it; what is said last counts.
    """
    _check(task_path)
    end = None if until is None else in_future(until)
    return retried(database, partial(_write, database, task_path, end))


def resume_task(database: str, task_path: str) -> bool:
    """Begin jobs of a paused task again; False if it was not paused.

    Those that were set aside are made due in batches, each a transaction of its own.
    """
    _check(task_path)
    paused = _pauses(database).filter(pk=task_path).filter(in_force(timezone.now()))
    end = as_stored(_LONG_AGO)
    was_paused = bool(retried(database, lambda: paused.update(until=end)))
    while _bring_back(database, task_path):
        pass
    return was_paused


def paused_tasks(database: str) -> set[str]:
    """The tasks of which no job is to be begun now."""
    pauses = _pauses(database).filter(in_force(timezone.now()))
    return set(pauses.values_list("pk", flat=True))


def set_aside(
    database: str, claims: Sequence[Claim], *, worker_id: str
) -> Sequence[Claim]:
    """Set those claims aside whose tasks are paused; return the others.

    Their attempts do not count, and what they hold of limits is free for others.
    """
    paths = {each.task_path for each in claims}

    def change() -> set[str]:
        with transaction.atomic(using=database):
            # Whoever believed a task to be paused has asked a moment ago, and it may
            # have been resumed since. From here on it cannot be.
            pauses = _locked(database, paths).filter(in_force(timezone.now()))
            paused = set(pauses.values_list("pk", flat=True))
            aside = [each for each in claims if each.task_path in paused]
            settle_only(
                database,
                [
                    sent_away(each, until=_aside(each.task_path), worker_id=worker_id)
                    for each in aside
                ],
            )
            return paused

    paused = retried(database, change)
    # Not before: within, it would wait for a commit that tests do not come to.
    aside = [each for each in claims if each.task_path in paused]
    promote_keys(database, (each.concurrency_key for each in aside))
    return [each for each in claims if each.task_path not in paused]


def is_aside(moment: datetime) -> bool:
    """Is a job that is scheduled for that moment set aside?"""
    return moment >= as_stored(_ASIDE)


def end_task_pauses(database: str) -> datetime | None:
    """Go on with what is over, a batch of each; return when there is more to do."""
    now = timezone.now()
    ends = dict(_pauses(database).order_by("pk").values_list("pk", "until"))
    known = {_aside(path) for path in ends}
    is_more = [
        _bring_back(database, path) for path, end in ends.items() if end and end <= now
    ]
    # Somebody may have deleted the row of a pause by hand.
    strays = [each for each in _moments(database) if each not in known]
    is_more += [_bring_back_strays(database, each) for each in strays]
    if any(is_more):
        return now
    return min((end for end in ends.values() if end and end > now), default=None)


def _check(task_path: object) -> None:
    if not isinstance(task_path, str) or not task_path.isprintable():
        raise ValueError(f"{task_path!r} is not the path of a task.")
    if not 1 <= len(task_path) <= PATH_LENGTH:
        raise ValueError(f"The path of a task has 1 to {PATH_LENGTH} characters.")


def _pauses(database: str) -> Any:
    return TaskPause.objects.using(database)


def _locked(database: str, paths: Collection[str]) -> Any:
    # In one order: two who lock several of them must not wait for each other.
    pauses = _pauses(database).filter(pk__in=paths)
    return pauses.order_by("pk").select_for_update()


def _write(database: str, path: str, end: datetime | None) -> bool:
    """Write the row, or its new end if there is one; tell whether it was in force."""
    pauses, now = _pauses(database), timezone.now()
    row = pauses.filter(pk=path)
    while True:
        if row.filter(in_force(now)).update(until=end):
            return False
        # What was set aside and is not brought back yet stays where it is.
        if row.filter(over(now)).update(until=end, created_at=now):
            return True
        try:
            # A block of its own: on PostgreSQL the refusal would break the caller's.
            with transaction.atomic(using=database):
                pauses.create(task_path=path, until=end)
        except IntegrityError:
            continue  # somebody was faster: that one's row has to be changed
        return True


# ── Aside, and back ────────────────────────────────────────────────────────────


def _aside(path: str) -> datetime:
    """Where jobs of this task are set aside: next to each other in the index."""
    return as_stored(_ASIDE + timedelta(microseconds=crc32(path.encode())))


def _bring_back(database: str, path: str) -> bool:
    """Make some jobs due, or end the pause if none is left; True if some may be."""

    def change() -> bool:
        with transaction.atomic(using=database):
            pause = _locked(database, [path]).filter(over(timezone.now())).first()
            if pause is None:
                return False  # somebody else has done it, or it is paused again
            is_more = _make_due(database, _aside(path), job__task_path=path)
            if not is_more:
                pause.delete()
            return is_more

    return retried(database, change)


def _bring_back_strays(database: str, moment: datetime) -> bool:
    def change() -> bool:
        with transaction.atomic(using=database):
            return _make_due(database, moment)

    return retried(database, change)


def _make_due(database: str, moment: datetime, **which: Any) -> bool:
    """Make a batch of those due that wait for this moment; True if it was full."""
    waiting = ScheduledExecution.objects.using(database).filter(scheduled_at=moment)
    first = waiting.filter(**which).order_by("priority", "pk")
    ids = list(first.values_list("pk", flat=True)[:BATCH_SIZE])
    # Some may be gone by now, discarded or cancelled.
    found = list(waiting.filter(pk__in=ids).order_by("pk").select_for_update())
    now = timezone.now()
    for each in found:
        each.scheduled_at = now
    # Like every transition: nobody who has read the old row can mistake it for the new.
    waiting.filter(pk__in=[each.pk for each in found])._raw_delete(database)
    ScheduledExecution.objects.using(database).bulk_create(found)
    return len(ids) == BATCH_SIZE


def _moments(database: str) -> Iterator[datetime]:
    """For which moments something is set aside; one step along the index for each."""
    rows = ScheduledExecution.objects.using(database).order_by("scheduled_at")
    moments = rows.values_list("scheduled_at", flat=True)
    moment = moments.filter(scheduled_at__gte=as_stored(_ASIDE)).first()
    while moment is not None:
        yield moment
        moment = moments.filter(scheduled_at__gt=moment).first()
