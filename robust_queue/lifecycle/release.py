"""Claimed ──▶ ready again, as if it had never been taken."""

from collections.abc import Sequence
from uuid import UUID

from django.utils import timezone

from robust_queue.stores import store_for

from .admit import promote_after
from .jobless import Held, without_jobless
from .wake import wake


def release(database: str, claims: Sequence[Held]) -> set[UUID]:
    """Give back claims that were not started, with their attempt restored.

    Returns the jobs that were still held; whoever lost a claim changes nothing.
    """
    whole = without_jobless(database, claims)
    released = store_for(database).release(whole, now=timezone.now())
    if released:
        wake(database)
    # One that has shared a slot is blocked again, though there may be another one.
    promote_after(database, whole)
    return released
