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
from .polling import ALL_QUEUES, ONE_QUEUE

_POLLS = {
    ALL_QUEUES: "rqueue_poll_all",
    ONE_QUEUE: "rqueue_poll_by_queue",
    DUE: "rqueue_dispatch_all",
}


class MySQLStore(Store):
    """Polls through covering indexes, changes rows through their keys."""

    def _hint(self, condition: str) -> str:
        return f"FORCE INDEX ({_POLLS[condition]})"

    def _by_key(self, table: str) -> str:
        return f"{super()._by_key(table)} FORCE INDEX (PRIMARY)"

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

    @property
    def _has_uuids(self) -> bool:
        return self.connection.features.has_native_uuid_field
