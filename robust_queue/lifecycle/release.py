"""Claimed ──▶ ready again, as if it had never been taken."""

from collections.abc import Sequence
from uuid import UUID

from django.utils import timezone

from robust_queue.stores import store_for
from robust_queue.stores.rows import Holding


def release(database: str, claims: Sequence[Holding]) -> set[UUID]:
    """Give back claims that were not started, with their attempt restored.

    Returns the jobs that were still held; whoever lost a claim changes nothing.
    """
    return store_for(database).release(claims, now=timezone.now())
