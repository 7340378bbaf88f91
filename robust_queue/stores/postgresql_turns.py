"""Turns of partitions, as steps of a statement of PostgreSQL; see turns.py."""

from typing import Any

from .looks import Turn
from .polling import ONE_QUEUE
from .turns import OLDEST

# How many partitions are looked at for each job that is wanted. Others may hold the
# jobs of some, and whoever passes over all of these would leave with nothing.
_PARTITIONS_PER_JOB = 4

# There are two limits throughout. One is what is left, which the planner cannot see, so
# that it follows the index. The other, as a plain number, changes nothing but what the
# planner expects: a statement that looks large is compiled, which takes far longer than
# to run it.

# A partition after the other, each found by one descent of the index, and no more of
# them than are asked for: around once, from the one behind the last to the last.
# Where the circle closes there is a place for jobs without partition.
_KEYS = f"""oldest{{position}} AS MATERIALIZED (
    SELECT job_id FROM (SELECT * FROM (
        SELECT job_id, partition_key FROM robust_queue_ready_executions
        WHERE queue_name = %s{{untaken}}
        ORDER BY priority, job_id LIMIT (SELECT {OLDEST})
    ) ready LIMIT {OLDEST}) oldest WHERE partition_key = ''
), keys{{position}} AS MATERIALIZED (
    WITH RECURSIVE keys (key, lap, place) AS (
        SELECT %s::text COLLATE "C", 0, 0
        FROM (SELECT %s::text AS queue_name) asked_for WHERE {ONE_QUEUE}
        UNION ALL
        SELECT COALESCE(following.key, ''),
            keys.lap + (following.key IS NULL)::integer, keys.place + 1
        FROM keys CROSS JOIN LATERAL (SELECT (
            SELECT partition_key::text FROM robust_queue_ready_executions
            WHERE queue_name = %s AND partition_key <> '' AND partition_key > keys.key
            ORDER BY partition_key LIMIT 1
        ) AS key) following
        WHERE keys.lap = 0 OR keys.lap = 1 AND keys.key < %s
    )
    SELECT key, place FROM keys
    WHERE place > 0 AND (lap = 0 OR lap = 1 AND key <= %s)
        AND (key <> '' OR EXISTS (SELECT 1 FROM oldest{{position}}))
    LIMIT {_PARTITIONS_PER_JOB} * ({{limit}})
)"""

_SHARE = """share{position} AS MATERIALIZED (
    SELECT greatest(({limit}) / greatest(count(*), 1), 1) AS size
    FROM (SELECT 1 FROM keys{position} LIMIT {limit}) counted
)"""


def _of_partition(most: str, *, but: str = "") -> str:
    return f"""
        SELECT job_id, priority FROM robust_queue_ready_executions
        WHERE queue_name = %s AND partition_key = keys.key AND partition_key <> ''
            {{untaken}}{but}
        ORDER BY priority, job_id LIMIT {most}
        FOR UPDATE SKIP LOCKED"""


# Rows are locked one by one as they are asked for, so never more than the limit.
_ROUND = f"""round{{position}} AS MATERIALIZED (SELECT * FROM (
    SELECT COALESCE(ready.job_id, older.job_id) AS job_id,
        COALESCE(ready.priority, older.priority) AS priority, keys.key, keys.place
    FROM keys{{position}} keys
    LEFT JOIN LATERAL ({_of_partition("(SELECT size FROM share{position})")}
    ) ready ON TRUE
    LEFT JOIN LATERAL (
        SELECT job_id, priority FROM robust_queue_ready_executions
        WHERE keys.key = ''
            AND job_id = ANY (ARRAY(SELECT job_id FROM oldest{{position}}))
        ORDER BY priority, job_id LIMIT (SELECT size FROM share{{position}})
        FOR UPDATE SKIP LOCKED
    ) older ON TRUE
    WHERE COALESCE(ready.job_id, older.job_id) IS NOT NULL
    LIMIT {{limit}}
) round LIMIT {{most}})"""

_IN_ROUND = " AND job_id <> ALL (ARRAY(SELECT job_id FROM round{position}))"

# What is left over goes to the first one that has so much, and the next turn begins
# behind it: it will be another one's then.
_MORE = f"""more{{position}} AS MATERIALIZED (SELECT * FROM (
    SELECT ready.job_id, keys.place
    FROM (
        SELECT key, place FROM round{{position}} WHERE key <> '' GROUP BY key, place
        HAVING count(*) >= (SELECT size FROM share{{position}}) ORDER BY place
    ) keys
    CROSS JOIN LATERAL ({_of_partition("{limit}", but=_IN_ROUND)}
    ) ready
    LIMIT {{limit}} - (SELECT count(*) FROM round{{position}})
) more LIMIT {{most}})"""

# The first of each, then the second of each, and at last what was left over: the very
# last one tells where the next turn begins.
_POLL = """poll{position} AS MATERIALIZED (
    SELECT job_id, {position} AS position, to_char(
        row_number() OVER (PARTITION BY key ORDER BY priority, job_id), 'FM000000'
    ) || to_char(place, 'FM000000') COLLATE "C" AS name FROM round{position}
    UNION ALL
    SELECT job_id, {position}, to_char(place, 'FM"~"000000') FROM more{position}
)"""

TURNS = ", ".join([_KEYS, _SHARE, _ROUND, _MORE, _POLL])

# The first jobs of all queues but some, in one order. The index of all queues is of no
# use: whoever follows it meets every job of those that are apart. So the heads of the
# others are looked at, and as many jobs of each queue are locked as it has among the
# first.
HEADS = """poll{position} AS MATERIALIZED (
    SELECT ready.job_id, {position} AS position, '' AS name
    FROM (
        SELECT name, count(*) AS many FROM (
            SELECT names.name FROM ({names}) names
            CROSS JOIN LATERAL (SELECT * FROM (
                SELECT priority, job_id FROM robust_queue_ready_executions
                WHERE queue_name = names.name{untaken}
                ORDER BY priority, job_id LIMIT {limit}
            ) ready LIMIT {most}) head
            WHERE {condition}
            ORDER BY head.priority, head.job_id LIMIT {limit}
        ) heads GROUP BY name LIMIT {most}
    ) shares
    CROSS JOIN LATERAL (
        SELECT job_id FROM robust_queue_ready_executions
        WHERE queue_name = shares.name{untaken}
        ORDER BY priority, job_id LIMIT shares.many
        FOR UPDATE SKIP LOCKED
    ) ready
    LIMIT {most}
)"""


def of_turn(turn: Turn) -> list[Any]:
    """The parameters of the steps of a turn."""
    queue, after, now = turn
    asked_for = [queue, after, queue, queue, queue, now]
    return [*asked_for, queue, after, after, queue, queue]
