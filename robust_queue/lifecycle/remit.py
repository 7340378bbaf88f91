"""Which recurring tasks a scheduler may fire, and which it leaves to others for now."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Q, QuerySet

from robust_queue import registry
from robust_queue.models import RecurringTask
from robust_queue.models.recurring import SILENCE

from .ticks import Timeline


class Remit:
    """The rows that are a scheduler's business.

    Of those that stand in code or settings these are the ``declared`` ones, if that is
    said: what another release declares is left to that. A row with a task or a schedule
    that nobody here understands may be understood by a newer release. It is left to
    that for some minutes, and not looked at meanwhile: it would be due all the time.
    """

    def __init__(self, declared: Collection[str] | None = None) -> None:
        self._declared = declared
        self._left: dict[int, datetime] = {}

    def rows(self, database: str) -> QuerySet[RecurringTask]:
        """Those that may come to run, the next one first."""
        rows = RecurringTask.objects.using(database).filter(
            enabled=True, next_run_at__isnull=False, retired_at=None
        )
        if self._declared is not None:
            rows = rows.filter(Q(static=False) | Q(key__in=self._declared))
        if self._left:
            rows = rows.exclude(pk__in=self._left)
        return rows.order_by("next_run_at", "pk")

    def remember(self, now: datetime) -> None:
        """Forget what was left to others for long enough."""
        self._left = {pk: until for pk, until in self._left.items() if until > now}

    def leaves(self, row: RecurringTask, now: datetime) -> bool:
        """Is it to be left to others for now?"""
        if row.next_run_at is None or is_understood(row):
            return False
        until = row.next_run_at + SILENCE
        if until > now:
            self._left[row.pk] = until
        return until > now


def is_understood(row: RecurringTask) -> bool:
    """Are there such a task and such a schedule, as far as this process knows?"""
    try:
        Timeline.of(row)
    except ValueError:
        return False
    return registry.find(row.task_path) is not None


def is_given_up(row: RecurringTask, now: datetime) -> bool:
    """Has it been due for so long that waiting would not help any more?"""
    return row.next_run_at is not None and now - row.next_run_at >= SILENCE
