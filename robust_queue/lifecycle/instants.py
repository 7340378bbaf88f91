"""Instants of recurring tasks ──▶ gone, mostly long after the jobs that they became.

They are the history, and they are what keeps an instant from being enqueued twice,
should a clock or a cursor be set back. Nobody sets them back by two days.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from robust_queue.backoffs import LONGEST_DELAY
from robust_queue.configuration import current
from robust_queue.models import Job, RecurringExecution

BATCH_SIZE = 500
LEAST = timedelta(days=2)


class Instants:
    """Forgets instants, in the order in which they were recorded."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._last_seen = 0

    def start_over(self) -> None:
        self._last_seen = 0

    def forget(self, now: datetime) -> Iterator[None]:
        """Delete those that are old and whose jobs are gone, a batch at a time."""
        kept = max(current().clear_recurring_executions_after, LEAST)
        before = now - min(kept, LONGEST_DELAY)
        while found := self._older(before):
            self._delete(found)
            self._last_seen = found[-1].pk
            yield

    def _older(self, before: datetime) -> "list[_Instant]":
        rows = RecurringExecution.objects.using(self._database)
        rows = rows.filter(pk__gt=self._last_seen).order_by("pk")
        found = rows.values_list("pk", "job_id", "created_at")[:BATCH_SIZE]
        return [each for each in map(_Instant._make, found) if each.at < before]

    def _delete(self, instants: "list[_Instant]") -> None:
        jobs = Job.objects.using(self._database)
        ids = [each.job_id for each in instants if each.job_id]
        kept = set(jobs.filter(pk__in=ids).values_list("pk", flat=True))
        gone = [each.pk for each in instants if each.job_id not in kept]
        rows = RecurringExecution.objects.using(self._database).filter(pk__in=gone)
        # In one statement, by their keys.
        rows._raw_delete(self._database)


class _Instant(NamedTuple):
    pk: int
    job_id: UUID | None
    at: datetime
