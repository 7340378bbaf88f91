"""How much is ready in each queue, without a look at every job."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from .polling import ONE_QUEUE
from .records import Records

# Jobs that go next, among which the oldest one is looked for.
GOING_NEXT = 100
# Jobs of a queue that are counted at most, even if there is no other queue.
MOST_OF_ONE = 100_000
# As many as a statement can ask for on every database.
QUEUES_AT_ONCE = 100

# Of those that wait behind all others, the first one is likely to be the oldest.
_QUEUE = """
SELECT {place},
    (SELECT COUNT(*) FROM (
        SELECT 1 AS one FROM {ready} WHERE queue_name = %s LIMIT %s
    ) counted),
    (SELECT MIN(created_at) FROM (
        SELECT created_at FROM {ready} WHERE queue_name = %s
        ORDER BY priority, job_id LIMIT %s
    ) going_next),
    (SELECT created_at FROM {ready} WHERE queue_name = %s AND priority = (
        SELECT MAX(priority) FROM {ready} WHERE queue_name = %s
    ) ORDER BY job_id LIMIT 1)
"""


class Measured(NamedTuple):
    """How many jobs of a queue are ready, and since when about the oldest of them."""

    ready: int
    oldest: datetime


class Measuring(Records):
    """Counts ready jobs for those who ask again and again."""

    def measure(self, names: Sequence[str], *, limit: int) -> dict[str, Measured]:
        """Those of the queues that have ready jobs; so many are counted at most.

        A statement for every hundred queues. Each part of it follows an index.
        """
        found: dict[str, Measured] = {}
        for begin in range(0, len(names), QUEUES_AT_ONCE):
            some = names[begin : begin + QUEUES_AT_ONCE]
            found |= self._measure(some, min(limit // len(names), MOST_OF_ONE))
        return found

    def _measure(self, names: Sequence[str], limit: int) -> dict[str, Measured]:
        ready = f"robust_queue_ready_executions {self._hint(ONE_QUEUE)}"
        parts = [_QUEUE.format(place=i, ready=ready) for i in range(len(names))]
        values = [
            value
            for name in names
            for value in (name, limit, name, GOING_NEXT, name, name)
        ]
        return {
            names[place]: Measured(count, min(map(self.from_time, moments)))
            for place, count, *moments in self._fetch("UNION ALL".join(parts), values)
            # Somebody may take the last one just when they are counted.
            if count and all(moments)
        }
