"""Counts of processes ──▶ rollups ──▶ gone, when nobody draws them any more.

A row is written again with all that it said before, and by its own process only. So a
reply that was lost counts nothing twice, and nobody waits for a row of somebody else.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import connections
from django.db.models import Q

from robust_queue.models import Rollup
from robust_queue.stores.conflicts import retried

from .tallies import Entry, Tally

# A little longer than the period that is drawn with each span.
KEPT = {60: timedelta(hours=2), 900: timedelta(days=2), 3600: timedelta(days=8)}
BATCH_SIZE = 500

# What makes two rows the same one.
_KEY = ("queue_name", "span", "at", "process_id")


class Depth(NamedTuple):
    """How many jobs were ready, and for how many milliseconds the oldest of them."""

    ready: int = 0
    latency: int = 0


def write_tallies(
    database: str, process_id: UUID, tallies: Mapping[Entry, Tally]
) -> None:
    """Write what a worker has counted, in one statement."""
    rows = [
        Rollup(
            **_key(entry, process_id),
            finished=tally.finished,
            failed=tally.failed,
            waits=tally.waits.text,
            runs=tally.runs.text,
        )
        for entry, tally in tallies.items()
    ]
    _write(database, rows, changes=["finished", "failed", "waits", "runs"])


def write_depths(database: str, process_id: UUID, most: Mapping[Entry, Depth]) -> None:
    """Write the most that a dispatcher has seen, in one statement."""
    rows = [
        Rollup(**_key(entry, process_id), depth=depth.ready, latency=depth.latency)
        for entry, depth in most.items()
    ]
    _write(database, rows, changes=["depth", "latency"])


def forget_old(database: str, now: datetime) -> Iterator[None]:
    """Delete rollups that are older than what is drawn, a batch at a time."""
    old = Q()
    for span, kept in KEPT.items():
        old |= Q(span=span, at__lt=now - kept)
    rows = Rollup.objects.using(database)
    while found := list(rows.filter(old).values_list("pk", flat=True)[:BATCH_SIZE]):
        # Sorted: another dispatcher may be at the same ones.
        _delete(database, sorted(found))
        yield


def _key(entry: Entry, process_id: UUID) -> dict[str, object]:
    return {
        "queue_name": entry.queue_name,
        "span": entry.window.span,
        "at": datetime.fromtimestamp(entry.window.at, UTC),
        "process_id": process_id,
    }


def _write(database: str, rows: Sequence[Rollup], *, changes: Sequence[str]) -> None:
    has_target = connections[database].features.supports_update_conflicts_with_target

    def change() -> None:
        Rollup.objects.using(database).bulk_create(
            rows,
            update_conflicts=True,
            update_fields=changes,
            unique_fields=_KEY if has_target else None,
        )

    # Neighbours in an index may wait for each other, whoever has written them.
    retried(database, change)


def _delete(database: str, keys: Sequence[int]) -> None:
    def change() -> None:
        rows = Rollup.objects.using(database).filter(pk__in=keys)
        rows._raw_delete(database)

    retried(database, change)
