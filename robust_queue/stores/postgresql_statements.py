"""The SQL of PostgreSQL.

Parameters carry their types, because a driver that binds on the server must know them.
Conditions of the form ``= ANY (ARRAY(SELECT …))`` follow an index whatever the
statistics say: a burst into an empty table must not be planned as a scan.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .postgresql_insertions import given, names
from .postgresql_locks import UNLOCK
from .postgresql_polls import Picked, picked
from .postgresql_slots import FREE
from .records import (
    BLOCKED_COLUMNS,
    FAILED_COLUMNS,
    FINISHED_COLUMNS,
    ONE_MORE_ATTEMPT,
    READY_COLUMNS,
    RETRIED_COLUMNS,
    SCHEDULED_COLUMNS,
)
from .rows import Selection

# ── Claim ──────────────────────────────────────────────────────────────────────

# The row of the process is locked only if there is something to take: an idle poll
# writes nothing. Heartbeats do not wait for such a lock, whoever strikes it off does.
_REGISTERED_IF_PICKED = """registered AS MATERIALIZED (
    SELECT id FROM robust_queue_processes
    WHERE id = %s::uuid AND EXISTS (SELECT 1 FROM picked)
    FOR KEY SHARE
)"""

_TAKEN = f"""taken AS (
    DELETE FROM robust_queue_ready_executions
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM picked))
        AND EXISTS (SELECT 1 FROM registered)
    RETURNING job_id, queue_name, priority, attempts
), claimed AS (
    INSERT INTO robust_queue_claimed_executions
        (job_id, queue_name, priority, attempts, created_at, process_id, token)
    SELECT job_id, queue_name, priority, {ONE_MORE_ATTEMPT},
        %s::timestamptz, %s::uuid, %s::uuid FROM taken
    RETURNING job_id, priority, attempts
)"""

_CLAIMS = """
SELECT claimed.job_id, claimed.attempts, job.task_path, job.backend, job.queue_name,
    job.priority, job.arguments, job.enqueued_at::text, job.run_after, job.metadata,
    claimed.priority AS rank, job.concurrency_key, job.unique_key,
    job.partition_key{more}
FROM claimed
JOIN robust_queue_jobs job ON job.id = claimed.job_id
{order}
"""
_IN_ONE_ORDER = "ORDER BY claimed.priority, claimed.job_id"
_QUEUE_BY_QUEUE = """JOIN picked ON picked.job_id = claimed.job_id
ORDER BY picked.position, picked.name, claimed.priority, claimed.job_id"""


def claim(selection: Selection, limit: int) -> tuple[str, list[Any]]:
    """The statement that polls the queues in order and takes what it finds."""
    polls = picked(selection, limit)
    steps = [polls.steps, _REGISTERED_IF_PICKED, _TAKEN]
    return _with(steps) + _claims(polls), polls.parameters


def _claims(polls: Picked, *, more: str = "") -> str:
    order = _IN_ONE_ORDER if polls.is_in_one_order else _QUEUE_BY_QUEUE
    return _CLAIMS.format(order=order, more=more)


# ── Settle, release, dispatch ──────────────────────────────────────────────────

# Locked in the order of the jobs: two settlers that lock in different orders deadlock.
_HELD = """given AS MATERIALIZED (
    SELECT * FROM unnest(%s::uuid[], %s::uuid[]) AS given (job_id, token)
), held AS MATERIALIZED (
    SELECT claimed.job_id FROM robust_queue_claimed_executions claimed
    JOIN given ON given.job_id = claimed.job_id AND given.token = claimed.token{after}
    ORDER BY claimed.job_id
    FOR UPDATE OF claimed
), gone AS (
    DELETE FROM robust_queue_claimed_executions
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM held))
    RETURNING job_id, queue_name, priority, attempts, slot_id, process_id
)"""


def _record(table: str, columns: Sequence[str]) -> str:
    return f"""{table} AS (
    INSERT INTO robust_queue_{table}_executions ({names(columns)})
    SELECT {names(columns)} FROM {given(columns)}
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM held))
)"""


_RETRY = f"""retried AS MATERIALIZED (
    SELECT * FROM {given(RETRIED_COLUMNS)}
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM held))
), attempted AS (
    INSERT INTO robust_queue_attempts ({names(FAILED_COLUMNS)})
    SELECT {names(FAILED_COLUMNS)} FROM retried
    ON CONFLICT DO NOTHING
), scheduled AS (
    INSERT INTO robust_queue_scheduled_executions ({names(SCHEDULED_COLUMNS)})
    SELECT gone.job_id, gone.queue_name, gone.priority, gone.attempts,
        retried.finished_at, retried.retry_at
    FROM retried JOIN gone ON gone.job_id = retried.job_id
)"""

_SNOOZE = f"""snoozed AS (
    INSERT INTO robust_queue_scheduled_executions ({names(SCHEDULED_COLUMNS)})
    SELECT gone.job_id, gone.queue_name, gone.priority, gone.attempts - 1,
        asleep.finished_at, asleep.until
    FROM unnest(%s::uuid[], %s::timestamptz[], %s::timestamptz[])
        AS asleep (job_id, finished_at, until)
    JOIN gone ON gone.job_id = asleep.job_id
)"""

_DROP = """dropped_attempts AS (
    DELETE FROM robust_queue_attempts WHERE job_id = ANY (%s::uuid[])
        AND job_id = ANY (ARRAY(SELECT job_id FROM held))
), dropped_runs AS (
    DELETE FROM robust_queue_isolated_runs WHERE job_id = ANY (%s::uuid[])
        AND job_id = ANY (ARRAY(SELECT job_id FROM held))
), dropped_jobs AS (
    DELETE FROM robust_queue_jobs WHERE id = ANY (%s::uuid[])
        AND id = ANY (ARRAY(SELECT job_id FROM held))
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Which kinds of outcomes there are to record."""

    kept: bool
    failed: bool
    retried: bool
    dropped: bool
    snoozed: bool
    limited: bool = False
    # Is there a unique key to be let go of?
    unlocked: bool = False


@lru_cache
def settle(kinds: Kinds) -> str:
    """The statement that records these kinds of outcomes for claims still held."""
    return f"{_with(_settled(kinds))} SELECT job_id FROM held"


def _settled(kinds: Kinds, *, after: str = "") -> list[str]:
    steps = [
        (True, _HELD.format(after=after)),
        (kinds.kept, _record("finished", FINISHED_COLUMNS)),
        (kinds.failed, _record("failed", FAILED_COLUMNS)),
        (kinds.retried, _RETRY),
        (kinds.dropped, _DROP),
        (kinds.snoozed, _SNOOZE),
        (kinds.limited, FREE),
        (kinds.unlocked, UNLOCK),
    ]
    return [step for is_needed, step in steps if is_needed]


# ── Settle and claim at once ───────────────────────────────────────────────────

# The process first, as whoever strikes it off does, who locks its claims behind it.
_REGISTERED = """registered AS MATERIALIZED (
    SELECT id FROM robust_queue_processes WHERE id = %s::uuid FOR KEY SHARE
)"""
_AFTER_REGISTERED = """
        AND (SELECT count(*) FROM registered) IS NOT NULL"""

# Instead of all jobs that were held the few that were not, mostly none: one array, in
# a row of its own behind the claims.
_LOST = """
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, ARRAY(SELECT job_id FROM given EXCEPT SELECT job_id FROM held)
"""


def exchange(kinds: Kinds, selection: Selection, limit: int) -> tuple[str, list[Any]]:
    """The statement that settles these kinds and claims, and the poll's parameters."""
    polls = picked(selection, limit)
    steps = [
        _REGISTERED,
        *_settled(kinds, after=_AFTER_REGISTERED),
        polls.steps,
        _TAKEN,
    ]
    claims = _claims(polls, more=", NULL::uuid[]")
    return f"{_with(steps)} ({claims}) {_LOST}", polls.parameters


def _with(steps: Sequence[str]) -> str:
    return f"WITH {', '.join(steps)}"


RELEASE = f"""{_with([_HELD.format(after="")])}
INSERT INTO robust_queue_ready_executions ({names(READY_COLUMNS)})
SELECT gone.job_id, gone.queue_name, gone.priority, gone.attempts - 1,
    %s::timestamptz, COALESCE(job.partition_key, '')
FROM gone LEFT JOIN robust_queue_jobs job ON job.id = gone.job_id
RETURNING job_id
"""

DISPATCH = f"""
WITH due AS MATERIALIZED (
    SELECT job_id FROM robust_queue_scheduled_executions
    WHERE scheduled_at <= %s
    ORDER BY scheduled_at, priority, job_id LIMIT %s
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM robust_queue_scheduled_executions
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM due))
    RETURNING job_id, queue_name, priority, attempts
), moved AS MATERIALIZED (
    SELECT gone.*, job.task_path, job.backend,
        COALESCE(job.concurrency_key, '') AS keys,
        COALESCE(job.partition_key, '') AS partition_key
    FROM gone LEFT JOIN robust_queue_jobs job ON job.id = gone.job_id
), ready AS (
    INSERT INTO robust_queue_ready_executions ({names(READY_COLUMNS)})
    SELECT job_id, queue_name, priority, attempts, %s::timestamptz, partition_key
    FROM moved WHERE keys = ''
), blocked AS (
    INSERT INTO robust_queue_blocked_executions ({names(BLOCKED_COLUMNS)})
    SELECT job_id, queue_name, priority, attempts, %s::timestamptz,
        split_part(keys, chr(10), 1),
        substr(keys, length(split_part(keys, chr(10), 1)) + 2)
    FROM moved WHERE keys <> ''
)
SELECT job_id, task_path, backend, queue_name, keys FROM moved
"""
