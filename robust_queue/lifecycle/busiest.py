"""The queues in which most jobs wait, and those to which nobody comes: only looks."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from robust_queue.stores import store_for

from .queues import QueueStatus, pauses_in_force, what_waits
from .workers import WorkerStatus

SHOWN = 8
# Beyond, queues are left out; and of each so many jobs are counted that the statement
# costs the same, however many there are.
MOST_QUEUES = 200
MOST_OF_ONE = 10_000
MOST_OF_ALL = 25_000


@dataclass(frozen=True, slots=True)
class Busiest:
    """Some queues, the fullest first."""

    rows: Sequence[QueueStatus] = ()
    # Nothing was counted beyond this, of any of them.
    counted_to: int = 0
    # Something is ready there. No live worker serves these, and these only quiet ones.
    unserved: Sequence[str] = ()
    only_quiet: Sequence[str] = ()


def busiest(database: str, alive: Sequence[WorkerStatus]) -> Busiest:
    """Where most is ready, as these workers serve it. Three statements."""
    now, store = timezone.now(), store_for(database)
    ready, paused = store.queue_names(now=now), pauses_in_force(database, now)
    names = sorted({*ready, *paused})[:MOST_QUEUES]
    counted_to = min(MOST_OF_ONE, MOST_OF_ALL // max(len(names), 1))
    # One more of each tells that there are more.
    measured = store.glance(names, limit=counted_to + 1)
    found = [
        QueueStatus(name=name, **what_waits(*each, now=now), **paused.get(name, {}))
        for name, each in measured.items()
    ]
    fullest = sorted(found, key=lambda each: (each.ready, each.latency), reverse=True)
    serving = {name: [it for it in alive if it.serves(name)] for name in ready}
    return Busiest(
        fullest[:SHOWN],
        counted_to,
        unserved=[name for name, found in serving.items() if not found],
        only_quiet=[name for name, found in serving.items() if _are_quiet(found)],
    )


def _are_quiet(serving: Sequence[WorkerStatus]) -> bool:
    return bool(serving) and all(each.is_quiet for each in serving)
