"""Unique keys that are held for nobody."""

from collections.abc import Iterator

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from robust_queue.models import UniqueLock

from .findings import Finding, named
from .invariants import WAITING


def examine(database: str) -> Iterator[Finding]:
    """Locks that are left over. Whoever wants such a key gets it all the same."""
    text = (
        "Unique locks are left over: their time is up, or their job has ended or is "
        "gone. That is the next sweep's work."
    )
    if rows := _left_over(database):
        yield Finding("warning", text, rows)


def _left_over(database: str) -> tuple[str, ...]:
    pending = Q()
    for model in WAITING.values():
        pending |= Q(Exists(model._default_manager.filter(pk=OuterRef("job_id"))))
    left = Q(expires_at__lt=timezone.now()) | (Q(expires_at=None) & ~pending)
    locks = UniqueLock.objects.using(database).filter(left).order_by("pk")
    return named((locks.values_list("pk", "job_id"), "{}, held by job {}".format))
