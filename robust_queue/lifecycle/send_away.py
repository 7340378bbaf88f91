"""Claimed ──▶ scheduled, as if it had not been claimed: it is not to begin yet."""

from datetime import datetime

from django.utils import timezone

from robust_queue.stores.rows import Claim, Snoozed


def sent_away(claim: Claim, *, until: datetime, worker_id: str) -> Snoozed:
    """The outcome of a claim that is to come back at that moment.

    Nothing of it was begun: the attempt does not count, and its slots are free.
    """
    now = timezone.now()
    return Snoozed(
        job_id=claim.job_id,
        token=claim.token,
        attempts=claim.attempts,
        worker_id=worker_id,
        started_at=now,
        finished_at=now,
        concurrency_key=claim.concurrency_key,
        unique_key=claim.unique_key,
        until=until,
    )
