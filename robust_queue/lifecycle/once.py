"""Requests that come again, as nobody heard the answer ──▶ jobs that are there.

Whoever asks gives the request a name. That is held among the unique keys for a day, by
the job, whatever becomes of it. Both are written in one transaction: there is never a
name without its job, nor a job whose name is not known to whoever repeats the request.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from robust_queue.exceptions import EnqueueError, RequestReusedError
from robust_queue.flow.uniqueness import digest
from robust_queue.models import Job
from robust_queue.stores import store_for
from robust_queue.stores.conflicts import retried
from robust_queue.stores.rows import NewLock

from .enqueue import Prepared, write

# For so long the answer is the same.
REMEMBERED = timedelta(days=1)
# As often the time of others may be over just when their names are to be had.
ROUNDS = 20


def key_of(asker: str, request_id: UUID) -> str:
    """What a request is known by. Nobody meets those of others."""
    return digest(f"requests of {asker}", str(request_id))


def write_once(
    database: str, prepared: Sequence[Prepared], keys: Sequence[str]
) -> None:
    """Write all jobs or none, except those that were written under the same key before.

    The results of those have the ids of what was written then. An empty key is none.
    ``RequestReusedError`` if it was another call.
    """
    named = {key: each for key, each in zip(keys, prepared, strict=True) if key}
    if not named and len({each.destination.alias for each in prepared}) == 1:
        write(prepared)  # all or none by itself
        return

    def change() -> dict[str, UUID]:
        with transaction.atomic(using=database):
            known = _take(database, named)
            _check_same(database, named, known)
            of_known = {id(named[key]) for key in known}
            write([each for each in prepared if id(each) not in of_known])
            _follow(database, named, known)
            return known

    for key, job_id in retried(database, change).items():
        named[key].result = replace(named[key].result, id=str(job_id))


def _take(database: str, named: Mapping[str, Prepared]) -> dict[str, UUID]:
    """Take keys; of those that somebody has, return their jobs.

    Waits for whoever is about to write under one of them.
    """
    store, now = store_for(database), timezone.now()
    locks = {key: _lock(key, each.job.id, each) for key, each in sorted(named.items())}
    for _ in range(ROUNDS):
        if store.lock_keys([*locks.values()]):
            return {}
        holders = store.holders(locks)
        old = [key for key, each in sorted(holders.items()) if each.is_stale(now)]
        for key in old:
            # Whoever was faster is met in the next round.
            store.take_over(locks[key], holders[key].job_id)
        if not old and len(holders) == len(locks):
            held = {key: each.job_id for key, each in holders.items()}
            return {k: v for k, v in held.items() if v != locks[k].job_id}
    raise EnqueueError("The names of the requests could not be had. Try again.")


def _check_same(
    database: str, named: Mapping[str, Prepared], known: Mapping[str, UUID]
) -> None:
    """Refuse a name that was given to a request for something else.

    A unique task may have answered with the job of a call that is not quite the same.
    What is gone cannot be compared any more.
    """
    jobs = Job.objects.using(database).filter(pk__in=known.values())
    stored = {
        pk: call for pk, *call in jobs.values_list("pk", "task_path", "arguments")
    }
    for key, job_id in known.items():
        each = named[key]
        wanted = [each.job.task_path, each.job.arguments]
        if each.unique is None and stored.get(job_id, wanted) != wanted:
            raise RequestReusedError(
                "Another call was enqueued under this request_id: give each request a "
                "new one."
            )


def _follow(
    database: str, named: Mapping[str, Prepared], known: Mapping[str, UUID]
) -> None:
    """Have names lead to the jobs that calls of unique tasks were answered with."""
    store = store_for(database)
    for lock, former in _moved(named, known):
        store.take_over(lock, former)


def _moved(
    named: Mapping[str, Prepared], known: Mapping[str, UUID]
) -> Iterator[tuple[NewLock, UUID]]:
    for key, each in sorted(named.items()):
        answered = UUID(each.result.id)
        if key not in known and answered != each.job.id:
            yield _lock(key, answered, each), each.job.id


def _lock(key: str, job_id: UUID, each: Prepared) -> NewLock:
    return NewLock(key, job_id, each.job.enqueued_at + REMEMBERED)
