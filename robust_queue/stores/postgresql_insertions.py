"""How PostgreSQL is told of new jobs: one statement for one, few for many."""

from collections.abc import Sequence

from .arrays import type_of
from .records import (
    BLOCKED_COLUMNS,
    JOB_COLUMNS,
    PLAIN_JOB_COLUMNS,
    READY_COLUMNS,
    SCHEDULED_COLUMNS,
    WAITING_COLUMNS,
)


def names(columns: Sequence[str]) -> str:
    return ", ".join(columns)


def values(columns: Sequence[str]) -> str:
    return ", ".join(["%s"] * len(columns))


def given(columns: Sequence[str]) -> str:
    """Parameters that are one array per column, as a table of rows."""
    arrays = ", ".join(f"%s::{type_of(column)}[]" for column in columns)
    return f"unnest({arrays}) AS given ({names(columns)})"


# The same values twice: to take them from the row that was written costs more.
def _insert_one(jobs: Sequence[str], table: str, columns: Sequence[str]) -> str:
    return f"""
WITH job AS (
    INSERT INTO robust_queue_jobs ({names(jobs)})
    VALUES ({values(jobs)})
)
INSERT INTO robust_queue_{table}_executions ({names(columns)})
VALUES ({values(columns)})
"""


# Nearly every job is ready at once, and has none of what the others have.
INSERT_PLAIN = _insert_one(PLAIN_JOB_COLUMNS, "ready", WAITING_COLUMNS)
INSERT_READY = _insert_one(JOB_COLUMNS, "ready", READY_COLUMNS)
INSERT_BLOCKED = _insert_one(JOB_COLUMNS, "blocked", BLOCKED_COLUMNS)
INSERT_SCHEDULED = _insert_one(JOB_COLUMNS, "scheduled", SCHEDULED_COLUMNS)


def _insert_many(jobs: Sequence[str], *, ready: str = "") -> str:
    """Jobs as arrays, with their rank, and whether they are due.

    Of those that need slots that is not known: they are neither ready nor scheduled.
    """
    return f"""
WITH given AS MATERIALIZED (
    SELECT * FROM {given((*jobs, "rank", "is_due"))}
), job AS (
    INSERT INTO robust_queue_jobs ({names(jobs)})
    SELECT {names(jobs)} FROM given
), ready AS (
    INSERT INTO robust_queue_ready_executions ({names(WAITING_COLUMNS)}{ready})
    SELECT id, queue_name, rank, 0, enqueued_at{ready} FROM given WHERE is_due
)
INSERT INTO robust_queue_scheduled_executions ({names(SCHEDULED_COLUMNS)})
SELECT id, queue_name, rank, 0, enqueued_at, run_after FROM given WHERE NOT is_due
"""


PLAIN_COLUMNS = (*PLAIN_JOB_COLUMNS, "rank", "is_due")
INSERT_MANY_PLAIN = _insert_many(PLAIN_JOB_COLUMNS)
NEW_JOB_COLUMNS = (*JOB_COLUMNS, "rank", "is_due")
INSERT_MANY = _insert_many(JOB_COLUMNS, ready=", partition_key")

INSERT_MANY_BLOCKED = f"""
INSERT INTO robust_queue_blocked_executions ({names(BLOCKED_COLUMNS)})
SELECT {names(BLOCKED_COLUMNS)} FROM {given(BLOCKED_COLUMNS)}
"""
