"""What there is to know of a worker outside that calls, in one statement."""

from typing import Any, NamedTuple
from uuid import UUID

from .records import Records

# By the server's own clock, as heartbeats are written.
_BEFORE = {
    "postgresql": "STATEMENT_TIMESTAMP() - make_interval(secs => %s)",
    "mysql": "UTC_TIMESTAMP(6) - INTERVAL %s SECOND",
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', '-' || %s || ' seconds')",
}

_ATTENDANCE = """
SELECT process.name, process.metadata, process.last_heartbeat_at > {before},
    tuning.process_id IS NOT NULL, tuning.is_quiet, tuning.is_to_stop,
    EXISTS (
        SELECT 1 FROM robust_queue_cancellations cancellation
        JOIN robust_queue_claimed_executions claimed
            ON claimed.job_id = cancellation.job_id
        WHERE claimed.process_id = process.id
    )
FROM robust_queue_processes process
LEFT JOIN robust_queue_tunings tuning ON tuning.process_id = process.id
WHERE process.id = %s AND process.kind = %s
"""


class Attendance(NamedTuple):
    """A process that calls, as the tables tell of it."""

    name: str
    metadata: str
    # It was heard of within the time that was asked about.
    is_fresh: bool
    # Somebody has asked something of it.
    is_tuned: bool
    is_quiet: bool
    is_to_stop: bool
    # Somebody has asked for the end of a job that it holds.
    is_to_cancel: bool


class Attending(Records):
    """Asked by every call of a worker outside, so its cost is that of a few rows."""

    def attendance(
        self, process_id: UUID, *, kind: str, fresh_for: float
    ) -> Attendance | None:
        """What is known of a process of this kind; None if it is not there."""
        statement = _ATTENDANCE.format(before=_BEFORE[self.connection.vendor])
        values: list[Any] = [fresh_for, self.to_id(process_id), kind]
        for name, metadata, *facts in self._fetch(statement, values):
            return Attendance(name, metadata, *map(bool, facts))
        return None
