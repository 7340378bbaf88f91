"""Scheduled ──▶ ready, when the time has come."""

from datetime import datetime

from django.utils import timezone

from robust_queue.stores import store_for

from .admit import admit
from .wake import wake

BATCH_SIZE = 500


def dispatch_due(
    database: str, *, limit: int = BATCH_SIZE, now: datetime | None = None
) -> int:
    """Move up to ``limit`` due jobs to their queues; return how many.

    Several dispatchers may do this at once: each row is moved by one of them.
    """
    due = store_for(database).dispatch(limit=limit, now=now or timezone.now())
    if due.moved > len(due.limited):
        wake(database)
    admit(database, due.limited)
    return due.moved
