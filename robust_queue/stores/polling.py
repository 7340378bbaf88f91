"""Which ready jobs come next: queue by queue, each through an index alone."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from .records import Records
from .rows import Selection

# The conditions of a poll. The pauses are asked for in the same statement, so that a
# pause counts from the next poll on and costs no round trip; none of them depends on
# the row, so each is evaluated once.
ALL_QUEUES = "NOT EXISTS (SELECT 1 FROM robust_queue_pauses)"
ONE_QUEUE = (
    "queue_name = %s AND NOT EXISTS"
    " (SELECT 1 FROM robust_queue_pauses pause WHERE pause.queue_name = %s)"
)

LOOSE_INDEX_SCAN = """
WITH RECURSIVE names (name) AS (
    SELECT MIN(queue_name) FROM robust_queue_ready_executions WHERE queue_name >= %s
    UNION ALL
    SELECT (
        SELECT MIN(ready.queue_name) FROM robust_queue_ready_executions ready
        WHERE ready.queue_name > names.name
    )
    FROM names WHERE SUBSTR(names.name, 1, %s) = %s
)
SELECT name FROM names
WHERE SUBSTR(name, 1, %s) = %s
    AND name NOT IN (SELECT queue_name FROM robust_queue_pauses)
ORDER BY name
"""


class Polling(Records):
    """The queues of a selection, polled in order."""

    def _lock_ready(self, selection: Selection, limit: int) -> list[UUID]:
        """Lock ready rows queue by queue: only so does every poll follow an index."""
        taken: list[UUID] = []
        for condition, parameters in self._polls(selection):
            taken += self._poll(condition, parameters, limit - len(taken), taken)
            if len(taken) == limit:
                break
        return taken

    def _polls(self, selection: Selection) -> Iterator[tuple[str, Sequence[Any]]]:
        """The condition of each poll, in order; each is asked for only if needed."""
        for pattern in selection.patterns:
            if not pattern.endswith("*"):
                yield ONE_QUEUE, (pattern, pattern)
                continue
            if pattern == "*":
                yield ALL_QUEUES, ()
                if not self._any_pause():
                    continue
            for name in self.queue_names(pattern[:-1]):
                yield ONE_QUEUE, (name, name)

    def _poll(
        self,
        condition: str,
        parameters: Sequence[Any],
        limit: int,
        taken: Sequence[UUID],
    ) -> list[UUID]:
        where = condition
        marks, keys = self._in(taken)
        if taken:
            # Overlapping patterns: this transaction's own locks are not passed over.
            where += f" AND job_id NOT IN ({marks})"
        rows = self._fetch(
            f"SELECT job_id FROM robust_queue_ready_executions {self._hint(condition)}"
            f" WHERE {where} ORDER BY priority, job_id LIMIT %s {self._skip_locked()}",
            (*parameters, *keys, limit),
        )
        return [self.from_id(job_id) for (job_id,) in rows]

    def queue_names(self, prefix: str = "") -> list[str]:
        """Queues that have ready jobs and are not paused, by name.

        A loose index scan: each step jumps to the next name, so that the cost is that
        of the number of queues and not of the number of jobs.
        """
        begins = (len(prefix), prefix)
        rows = self._fetch(LOOSE_INDEX_SCAN, (prefix, *begins, *begins))
        return [name for (name,) in rows]

    def _any_pause(self) -> bool:
        return bool(self._fetch("SELECT 1 FROM robust_queue_pauses LIMIT 1", ()))
