"""MariaDB and MySQL: named indexes, because the optimizer would choose otherwise.

A statement locks every row that it looks at, not only those that it finds. One that
sorts, or that scans a small table instead of asking its key, waits for rows of others
and keeps others from theirs.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from .base import DUE, Store
from .clearing import ENDED
from .dialect import COUNTED
from .limiting import NEXT_OF_KEY
from .locking import EXPIRED, LOCKS, OF_JOBS
from .looks import Turn
from .polling import ALL_QUEUES, ONE_QUEUE, PAUSED_NAMES
from .turns import NEXT_PARTITION, NO_PARTITION, ONE_PARTITION

# No queue has it in its name: it sorts behind every character that can be printed.
LAST_CHARACTER = "\U0010ffff"

_POLLS = {
    ALL_QUEUES: "rqueue_poll_all",
    ONE_QUEUE: "rqueue_poll_by_queue",
    NEXT_PARTITION: "rqueue_poll_by_partition",
    ONE_PARTITION: "rqueue_poll_by_partition",
    NO_PARTITION: "rqueue_poll_by_partition",
    DUE: "rqueue_dispatch_all",
    NEXT_OF_KEY: "rqueue_unblock",
    ENDED["finished"]: "rqueue_finished_at",
    ENDED["failed"]: "rqueue_failed_at",
    EXPIRED: "rqueue_lock_expiry",
    OF_JOBS: "rqueue_lock_of_job",
}
# Where that by which rows are named is not the primary key.
_KEYS = {
    "attempts": "rqueue_attempt_counted_once",
    "isolated_runs": "rqueue_run_counted_once",
}


class MySQLStore(Store):
    """Polls through covering indexes, changes rows through their keys."""

    locks_what_it_meets = True
    # Rows that were there are counted as well.
    _counts_insertions = False

    def _hint(self, condition: str) -> str:
        return f"FORCE INDEX ({_POLLS[condition]})"

    def _as_of_now(self) -> str:
        # At REPEATABLE READ a plain read would miss jobs that a poll has just locked.
        return "LOCK IN SHARE MODE"

    def _unless_there(self) -> str:
        # Not INSERT IGNORE, which would also cut off what is too long for its column.
        same = "robust_queue_attempts.attempts"
        return f"ON DUPLICATE KEY UPDATE {same} = {same}"

    def _unless_counted(self) -> str:
        same = "robust_queue_semaphores.slots"
        return f"ON DUPLICATE KEY UPDATE {same} = {same}"

    def _or_count_anew(self) -> str:
        changes = ", ".join(f"{name} = VALUES({name})" for name in COUNTED)
        return f"ON DUPLICATE KEY UPDATE {changes}"

    def _unless_locked(self) -> str:
        # Locks what is there as whoever changes it does. Two who had only read it, as
        # by INSERT IGNORE, would wait for each other as soon as one takes it over.
        return f"ON DUPLICATE KEY UPDATE job_id = {LOCKS}.job_id"

    def _from_locks(self) -> str:
        return f"{LOCKS} FROM {self._by_key('unique_locks')}"

    def _as_committed(self) -> str:
        level = getattr(self.connection, "isolation_level", None)
        return "" if level == "read committed" else self._as_of_now()

    def queue_names(
        self, prefix: str = "", *, now: datetime | None = None
    ) -> list[str]:
        # The server has its own loose index scan, and bounds the depth of recursion.
        rows = self._fetch(
            "SELECT name FROM (SELECT DISTINCT queue_name AS name"
            f" FROM robust_queue_ready_executions {self._hint(ONE_QUEUE)}"
            " WHERE queue_name >= %s AND queue_name <= %s) names"
            f" WHERE name NOT IN ({PAUSED_NAMES}) ORDER BY name",
            (prefix, prefix + LAST_CHARACTER, self.to_time(now or timezone.now())),
        )
        return [name for (name,) in rows if name.startswith(prefix)]

    def _without_partition(
        self, turn: Turn, limit: int, taken: Sequence[UUID]
    ) -> list[UUID]:
        # The index has all jobs here, as no index can leave some out.
        queue = self._unless_paused(turn.queue, turn.now)
        return self._poll(NO_PARTITION, queue, limit, taken)

    def keys_waited_for(self, after: str = "", *, limit: int) -> list[str]:
        # As above: a loose index scan of the server's own.
        rows = self._fetch(
            "SELECT DISTINCT concurrency_key FROM robust_queue_blocked_executions"
            f" {self._hint(NEXT_OF_KEY)} WHERE concurrency_key > %s"
            " ORDER BY concurrency_key LIMIT %s",
            (after, limit),
        )
        return [key for (key,) in rows]

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
