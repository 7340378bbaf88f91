"""Claims of workers outside whose time is up ──▶ timed out, or tried again.

A worker of our own ends its tasks by itself. One outside is told until when it has, and
may hang all the same, while it goes on to tell that it is alive. One that has been
silent since may be dead: then its jobs were interrupted, and are left to whoever
strikes it off.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from django.db.models import Exists, OuterRef, QuerySet

from robust_queue import policies
from robust_queue.configuration import current
from robust_queue.exceptions import TaskTimeout
from robust_queue.models import ClaimedExecution, Process
from robust_queue.models.processes import EXTERNAL

from . import recover
from .moments import instant
from .policy import policy_for
from .recover import HeldClaim

BATCH = 500


def end_overdue(database: str) -> int:
    """End what should have been over by now, and a little later; return how many.

    The worker finds out when it reports: the claim is not its own any more.
    """
    outside = Process.objects.filter(pk=OuterRef("process_id"), kind=EXTERNAL)
    claims = ClaimedExecution.objects.using(database).filter(Exists(outside))
    return sum(_end_late(database, held) for held in _batches(claims))


def _batches(claims: QuerySet[ClaimedExecution]) -> Iterator[list[HeldClaim]]:
    """All of them, by their jobs: those that may take for ever are passed by."""
    rows = claims.order_by("pk")
    while held := recover.claims_among(rows[:BATCH]):
        yield held
        rows = rows.filter(pk__gt=held[-1].job_id)


def _end_late(database: str, held: list[HeldClaim]) -> int:
    now = datetime.now(UTC)
    late = {each: ends for each in held if (ends := _ends_at(each)) and ends < now}
    holders = Process.objects.using(database).in_bulk({it.process_id for it in late})
    return sum(_end(database, each, late) for each in holders.values())


def _ends_at(claim: HeldClaim) -> datetime | None:
    """When its time is up, with some grace; None: it may take for ever."""
    if claim.enqueued_at is None:
        return None
    enqueued_at, began = instant(claim.enqueued_at), instant(claim.started_at)
    ends = policies.ends_at(policy_for(claim), enqueued_at, now=began)
    return ends and ends + current().timeout_grace


def _end(database: str, holder: Process, late: Mapping[HeldClaim, datetime]) -> int:
    heard_at = instant(holder.last_heartbeat_at)
    its_own = [
        claim
        for claim, ends in late.items()
        if claim.process_id == holder.pk and ends < heard_at
    ]
    error = TaskTimeout("Its time was up, and its worker has not reported anything.")
    ended = recover.give_up(database, its_own, error, worker_id=str(holder.name))
    return len(ended)
