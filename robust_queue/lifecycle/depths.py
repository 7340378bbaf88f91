"""How deep the queues are, and how long their oldest jobs have waited: only looks.

Made to be asked every minute, however much there is. So it stops counting at some
point, and does not look at every job for the oldest one.
"""

from datetime import datetime

from django.utils import timezone

from robust_queue.models import Pause
from robust_queue.models.queues import in_force
from robust_queue.models.rollups import EVERY_QUEUE
from robust_queue.stores import store_for
from robust_queue.stores.measuring import Measured

from .rollups import Depth
from .tallies import MOST_QUEUES

MOST_COUNTED = 1_000_000


def depths(database: str) -> dict[str, Depth]:
    """By queue, and of all of them together; nothing if nothing is ready."""
    now = timezone.now()
    store = store_for(database)
    pauses = Pause.objects.using(database).filter(in_force(now))
    paused = pauses.values_list("queue_name", flat=True)
    names = sorted({*store.queue_names(now=now), *paused})[:MOST_QUEUES]
    if not names:
        return {}
    measured = store.measure(names, limit=MOST_COUNTED)
    found = {name: _depth(each, now) for name, each in measured.items()}
    if not found:
        return {}
    apart = {name: found[name] for name in names if name in found}
    return {EVERY_QUEUE: _together(found), **apart}


def _depth(measured: Measured, now: datetime) -> Depth:
    # Another machine's clock may be ahead of this one's.
    age = max((now - measured.oldest).total_seconds(), 0.0)
    return Depth(measured.ready, round(age * 1000))


def _together(found: dict[str, Depth]) -> Depth:
    ready, latencies = zip(*found.values(), strict=True)
    return Depth(sum(ready), max(latencies))
