"""Outcomes of claims, as workers would have them."""

from django.utils import timezone

from robust_queue.stores.rows import Finished


def success(claimed):
    now = timezone.now()
    return Finished(
        job_id=claimed.job_id,
        token=claimed.token,
        attempts=claimed.attempts,
        worker_id="worker",
        started_at=now,
        finished_at=now,
        concurrency_key=claimed.concurrency_key,
        unique_key=claimed.unique_key,
        result="null",
    )
