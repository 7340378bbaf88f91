"""Requests that come again, as nobody heard the answer ──▶ jobs that are there.

Whoever asks gives each request a name, which is written in the transaction that writes
the job, and kept for a day, whatever becomes of the job. So there is never a name
without its job, nor a job whose name is not known to whoever repeats the request.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from robust_queue.exceptions import EnqueueError, RequestReusedError
from robust_queue.flow.uniqueness import digest
from robust_queue.models import NamedRequest
from robust_queue.stores.conflicts import retried

from .enqueue import Prepared, write

# For so long the answer is the same.
REMEMBERED = timedelta(days=1)
# As often the time of others may be over just when their names are to be had.
ROUNDS = 20
# What is deleted at a time, and for how many seconds: others have work to do meanwhile.
FEW = 500
PATIENCE = 1.0


class Name(NamedTuple):
    """What a request is known by, and what it asks for."""

    key: str
    sent: str

    @classmethod
    def of(cls, asker: str, request_id: UUID, sent: str) -> "Name":
        """Nobody meets the requests of others."""
        return cls(digest(asker, str(request_id)), digest("sent", sent))


def write_once(
    database: str, prepared: Sequence[Prepared], names: Sequence[Name | None]
) -> int:
    """Write all jobs or none, but those of requests that came before; return how many.

    The results of those have the ids of what was written then. A request without a name
    never came before. ``RequestReusedError`` if one of that name asked for something
    else.
    """
    if not any(names) and len({each.destination.alias for each in prepared}) == 1:
        write(prepared)  # all or none by itself
        return len(prepared)
    results = [each.result for each in prepared]
    for each in prepared:
        # The transaction is ours, and may come to nothing.
        each.on_commit = True

    def change() -> Mapping[int, UUID]:
        for each, result in zip(prepared, results, strict=True):
            each.result = result  # whatever an attempt before this one has met
        with transaction.atomic(using=database):
            known = _known(database, prepared, names)
            new = [at for at in range(len(prepared)) if at not in known]
            write([prepared[at] for at in new])
            for at in new:
                _lead_to_answer(database, prepared[at], names[at])
            return known

    known = retried(database, change)
    for at, job_id in known.items():
        prepared[at].result = replace(results[at], id=str(job_id))
    return len(prepared) - len(known)


def forget(database: str) -> int:
    """Delete names whose time is over, for a while; return how many."""
    until, deleted = time.monotonic() + PATIENCE, 0
    over = _rows(database).filter(expires_at__lte=timezone.now())
    while time.monotonic() < until:
        keys = list(over.order_by("expires_at").values_list("pk", flat=True)[:FEW])
        # One that was given anew meanwhile stays.
        some = over.filter(pk__in=keys)
        deleted += retried(database, partial(some._raw_delete, database))
        if len(keys) < FEW:
            break
    return deleted


def _known(
    database: str, prepared: Sequence[Prepared], names: Sequence[Name | None]
) -> dict[int, UUID]:
    """Take the names; tell the jobs of requests that came before, by their places."""
    wanted = {
        name.key: _row(name, each)
        for name, each in zip(names, prepared, strict=True)
        if name
    }
    found = _taken(database, wanted)
    before = {
        at: (found[name.key], name)
        for at, name in enumerate(names)
        if name and found[name.key].job_id != wanted[name.key].job_id
    }
    reused = [at for at, (row, name) in before.items() if row.sent != name.sent]
    if reused:
        raise RequestReusedError(
            "Something else was asked for under this request_id: give each job a new "
            "one.",
            places=reused,
        )
    return {at: row.job_id for at, (row, _) in before.items()}


def _taken(database: str, wanted: Mapping[str, NamedRequest]) -> dict[str, Any]:
    """Write names, in their order, unless they are there; return what is there then.

    Waits for whoever is about to write one of them.
    """
    rows, now = _rows(database), timezone.now()
    ordered = [wanted[key] for key in sorted(wanted)]
    for _ in range(ROUNDS):
        rows.bulk_create(ordered, ignore_conflicts=True)
        found: dict[str, Any] = rows.in_bulk(list(wanted))
        old = [found[key] for key in sorted(found) if found[key].expires_at <= now]
        for each in old:
            # Whoever was faster is met in the next round.
            mine = wanted[each.pk]
            former = rows.filter(pk=each.pk, job_id=each.job_id)
            former.update(
                sent=mine.sent, job_id=mine.job_id, expires_at=mine.expires_at
            )
        if not old and len(found) == len(wanted):
            return found
    raise EnqueueError("The names of the requests could not be had. Try again.")


def _lead_to_answer(database: str, each: Prepared, name: Name | None) -> None:
    """Have a name lead to the job that a call of a unique task was answered with."""
    answer = UUID(each.result.id)
    if name and answer != each.job.id:
        _rows(database).filter(pk=name.key).update(job_id=answer)


def _row(name: Name, each: Prepared) -> NamedRequest:
    return NamedRequest(
        key=name.key,
        sent=name.sent,
        job_id=each.job.id,
        expires_at=each.job.enqueued_at + REMEMBERED,
    )


def _rows(database: str) -> Any:
    return NamedRequest.objects.using(database)
