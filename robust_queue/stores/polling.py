"""Which ready jobs come next: queue by queue, each through an index alone."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from .records import Records
from .rows import Selection

# The conditions of a poll. The pauses are asked for in the same statement, so that a
# pause counts from the next poll on and costs no round trip; none of them depends on
# the row, so each is evaluated once.
#
# A pause with an end is over by itself: nobody has to take it away first. Whether it is
# so by now is judged by the moment that comes with the poll, as it is whether a job is
# due. The server's own clock would be one for all hosts, but where Django keeps wall
# time the server does not know in which zone.
IN_FORCE = "(until IS NULL OR until > %s)"
ANY_PAUSE = f"EXISTS (SELECT 1 FROM robust_queue_pauses WHERE {IN_FORCE})"
ALL_QUEUES = f"NOT {ANY_PAUSE}"
ONE_QUEUE = (
    "queue_name = %s AND NOT EXISTS (SELECT 1 FROM robust_queue_pauses pause"
    f" WHERE pause.queue_name = %s AND {IN_FORCE})"
)
PAUSED_NAMES = f"SELECT queue_name FROM robust_queue_pauses WHERE {IN_FORCE}"

LOOSE_INDEX_SCAN = f"""
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
    AND name NOT IN ({PAUSED_NAMES})
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
        now = self.to_time(selection.now)
        for pattern in selection.patterns:
            if not pattern.endswith("*"):
                yield ONE_QUEUE, (pattern, pattern, now)
                continue
            if pattern == "*":
                yield ALL_QUEUES, (now,)
                if not self._any_pause(now):
                    continue
            for name in self.queue_names(pattern[:-1], now=selection.now):
                yield ONE_QUEUE, (name, name, now)

    def _poll(
        self,
        condition: str,
        parameters: Sequence[Any],
        limit: int,
        taken: Sequence[UUID],
        *,
        unless: str = "",
        asked: Sequence[Any] = (),
    ) -> list[UUID]:
        where = f"{condition} AND NOT {unless}" if unless else condition
        marks, keys = self._in(taken)
        if taken:
            # Overlapping patterns: this transaction's own locks are not passed over.
            where += f" AND job_id NOT IN ({marks})"
        rows = self._fetch(
            f"SELECT job_id FROM robust_queue_ready_executions {self._hint(condition)}"
            f" WHERE {where} ORDER BY priority, job_id LIMIT %s {self._skip_locked()}",
            (*parameters, *asked, *keys, limit),
        )
        return [self.from_id(job_id) for (job_id,) in rows]

    def queue_names(
        self, prefix: str = "", *, now: datetime | None = None
    ) -> list[str]:
        """Queues that have ready jobs and are not paused, by name.

        A loose index scan: each step jumps to the next name, so that the cost is that
        of the number of queues and not of the number of jobs.
        """
        begins = (len(prefix), prefix)
        moment = self.to_time(now or timezone.now())
        rows = self._fetch(LOOSE_INDEX_SCAN, (prefix, *begins, *begins, moment))
        return [name for (name,) in rows]

    def _any_pause(self, now: Any) -> bool:
        return bool(self._fetch(f"{PAUSED_NAMES} LIMIT 1", (now,)))
