"""MariaDB and MySQL: named indexes, because the optimizer would choose otherwise.

A statement locks every row that it looks at, not only those that it finds. One that
sorts, or that scans a small table instead of asking its key, waits for rows of others
and keeps others from theirs.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.conf import settings

from .base import DUE, Store
from .clearing import ENDED
from .polling import ALL_QUEUES, ONE_QUEUE

# No queue has it in its name: it sorts behind every character that can be printed.
LAST_CHARACTER = "\U0010ffff"

_POLLS = {
    ALL_QUEUES: "rqueue_poll_all",
    ONE_QUEUE: "rqueue_poll_by_queue",
    DUE: "rqueue_dispatch_all",
    ENDED["finished"]: "rqueue_finished_at",
    ENDED["failed"]: "rqueue_failed_at",
}
# Where that by which rows are named is not the primary key.
_KEYS = {
    "attempts": "rqueue_attempt_counted_once",
    "isolated_runs": "rqueue_run_counted_once",
}


class MySQLStore(Store):
    """Polls through covering indexes, changes rows through their keys."""

    def _hint(self, condition: str) -> str:
        return f"FORCE INDEX ({_POLLS[condition]})"

    def _as_of_now(self) -> str:
        # At REPEATABLE READ a plain read would miss jobs that a poll has just locked.
        return "LOCK IN SHARE MODE"

    def _unless_there(self) -> str:
        # Not INSERT IGNORE, which would also cut off what is too long for its column.
        same = "robust_queue_attempts.attempts"
        return f"ON DUPLICATE KEY UPDATE {same} = {same}"

    def queue_names(self, prefix: str = "") -> list[str]:
        # The server has its own loose index scan, and bounds the depth of recursion.
        rows = self._fetch(
            "SELECT name FROM (SELECT DISTINCT queue_name AS name"
            f" FROM robust_queue_ready_executions {self._hint(ONE_QUEUE)}"
            " WHERE queue_name >= %s AND queue_name <= %s) names"
            " WHERE name NOT IN (SELECT queue_name FROM robust_queue_pauses)"
            " ORDER BY name",
            (prefix, prefix + LAST_CHARACTER),
        )
        return [name for (name,) in rows if name.startswith(prefix)]

    def _by_key(self, table: str, name: str = "") -> str:
        key = _KEYS.get(table, "PRIMARY")
        return f"{super()._by_key(table, name)} FORCE INDEX ({key})"

    def _delete(self, table: str, column: str, ids: Sequence[UUID]) -> None:
        if not ids:
            return
        # A plain DELETE takes no index hint and scans a table that is small, waiting
        # for rows of others. A join in a fixed order asks the key, row by row.
        mark = "CAST(%s AS UUID)" if self._has_uuids else "%s"
        rest = f" UNION ALL SELECT {mark}" * (len(ids) - 1)
        target = f"robust_queue_{table}"
        self._execute(
            f"DELETE {target} FROM (SELECT {mark} AS given_id{rest}) given"
            f" STRAIGHT_JOIN {self._by_key(table)} ON {target}.{column} = given_id",
            [self.to_id(job_id) for job_id in ids],
        )

    def from_time(self, value: Any) -> Any:
        return super().from_time(value) if settings.USE_TZ else value
