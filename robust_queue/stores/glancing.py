"""How much is ready in the queues of a page: a glance at what goes next in each."""

from collections.abc import Sequence

from .measuring import Measured
from .polling import ONE_QUEUE
from .records import Records

# In the order of the index, so that no database reads the whole table for one queue.
_QUEUE = """
SELECT * FROM (
    SELECT {place} AS place, COUNT(*) AS ready, MIN(created_at) AS oldest FROM (
        SELECT created_at FROM {table} WHERE queue_name = %s
        ORDER BY priority, job_id LIMIT %s
    ) going_next
) queue_{place}
"""


class Glancing(Records):
    """Counts the ready jobs of a few queues, by their names."""

    def glance(self, names: Sequence[str], *, limit: int) -> dict[str, Measured]:
        """Those of the queues that have ready jobs; of each so many are looked at.

        One statement. Its cost grows with the names and the limit, not with the table.
        """
        table = f"robust_queue_ready_executions {self._hint(ONE_QUEUE)}"
        parts = [_QUEUE.format(place=i, table=table) for i in range(len(names))]
        values = [value for name in names for value in (name, limit)]
        rows = self._fetch("UNION ALL".join(parts), values) if names else ()
        return {
            names[place]: Measured(ready, self.from_time(oldest))
            for place, ready, oldest in rows
            if ready
        }
