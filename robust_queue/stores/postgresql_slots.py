"""Slots on PostgreSQL: freed, taken and shared in one statement each.

A statement sees what was committed when it began, however long it then waits for a
row. What it counts is therefore asked of the row that it has locked, and what it may
have overlooked is seen by whoever came later: see Limiting.promote().
"""

from .limiting import MOST_AT_ONCE
from .polling import PAUSED_NAMES
from .records import ONE_MORE_ATTEMPT, READY_COLUMNS, rank

_READY = ", ".join(READY_COLUMNS)

# A step of a settle. Of claims that are over: their slots, unless others share them.
# Those others are locked, so that of two who end parts of the same chain at the same
# time one waits for the other, or is told to try again.
FREE = """limited AS MATERIALIZED (
    SELECT COALESCE(gone.slot_id, gone.job_id) AS slot_id,
        gone.slot_id IS NOT NULL AS is_shared, of_job.key
    FROM unnest(%s::uuid[], %s::text[]) AS of_job (job_id, key)
    JOIN gone ON gone.job_id = of_job.job_id
), going_on AS MATERIALIZED (
    SELECT slot_id FROM robust_queue_claimed_executions
    WHERE process_id = ANY (ARRAY(SELECT process_id FROM gone))
        AND slot_id = ANY (ARRAY(SELECT slot_id FROM limited WHERE is_shared))
        AND job_id <> ALL (ARRAY(SELECT job_id FROM held))
    ORDER BY job_id
    FOR UPDATE
), freed AS MATERIALIZED (
    SELECT key, count(DISTINCT slot_id) AS slots FROM limited
    WHERE slot_id <> ALL (ARRAY(SELECT slot_id FROM going_on))
    GROUP BY key
), locked AS MATERIALIZED (
    SELECT key FROM robust_queue_semaphores
    WHERE key = ANY (ARRAY(SELECT key FROM freed))
    ORDER BY key
    FOR UPDATE
), counted AS (
    UPDATE robust_queue_semaphores semaphore
    SET value = LEAST(value + freed.slots, semaphore.slots)
    FROM freed
    WHERE semaphore.key = freed.key
        AND freed.key = ANY (ARRAY(SELECT key FROM locked))
)"""

# Who is next is read from the snapshot, and how many of them fit as well. That number
# is taken only if the row still has as many, as it is when it comes to be locked. If it
# has not, somebody else was faster, and it is worth another look.
PROMOTE = f"""
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest(%s::text[], %s::integer[], %s::timestamptz[])
        AS wanted (key, slots, expires_at)
), room AS MATERIALIZED (
    SELECT wanted.key, wanted.expires_at,
        COALESCE(wanted.slots, semaphore.slots, 1) AS slots,
        COALESCE(
            semaphore.value + COALESCE(wanted.slots, semaphore.slots) - semaphore.slots,
            wanted.slots, 1
        ) AS free
    FROM wanted LEFT JOIN LATERAL (
        -- One by one: the table of all keys would be read as soon as there are many.
        SELECT value, slots FROM robust_queue_semaphores
        WHERE robust_queue_semaphores.key = wanted.key OFFSET 0
    ) semaphore ON TRUE
), next AS MATERIALIZED (
    SELECT line.*, room.key, room.slots, room.expires_at FROM room
    CROSS JOIN LATERAL (
        SELECT job_id, other_keys FROM robust_queue_blocked_executions
        WHERE concurrency_key = room.key
        ORDER BY priority, job_id LIMIT LEAST(room.free, {MOST_AT_ONCE})
        FOR UPDATE SKIP LOCKED
    ) line
    WHERE room.free > 0
), alone AS MATERIALIZED (
    SELECT key, slots, expires_at, count(*) AS number,
        (array_agg(job_id))[1] AS holder_id
    FROM next WHERE other_keys = '' GROUP BY key, slots, expires_at
), taken AS (
    INSERT INTO robust_queue_semaphores AS semaphore
        (key, value, slots, expires_at, holder_id)
    SELECT key, slots - number, slots, expires_at, holder_id
    FROM alone ORDER BY key
    ON CONFLICT (key) DO UPDATE
    SET value = semaphore.value - semaphore.slots + EXCLUDED.value,
        slots = EXCLUDED.slots, expires_at = EXCLUDED.expires_at,
        holder_id = EXCLUDED.holder_id
    WHERE semaphore.value - semaphore.slots + EXCLUDED.value >= 0
    RETURNING key
), gone AS (
    DELETE FROM robust_queue_blocked_executions
    WHERE job_id = ANY (ARRAY(
        -- Not a join: of that which was written nobody knows how much it is.
        SELECT job_id FROM next
        WHERE other_keys = '' AND (key IN (SELECT key FROM taken)) IS TRUE
    ))
    RETURNING job_id, queue_name, priority, attempts
), ready AS (
    INSERT INTO robust_queue_ready_executions ({_READY})
    SELECT gone.job_id, gone.queue_name, {rank("gone.priority")}, gone.attempts,
        %s::timestamptz, COALESCE(job.partition_key, '')
    FROM gone LEFT JOIN robust_queue_jobs job ON job.id = gone.job_id
)
SELECT job_id, queue_name, '' AS key, '' AS other_keys FROM gone
UNION ALL
SELECT job_id, '', key, other_keys FROM next WHERE other_keys <> ''
UNION ALL
SELECT NULL, '', key, '' FROM alone WHERE key <> ALL (ARRAY(SELECT key FROM taken))
"""

# Claims that share the slots of others. Each of those has a key that no other has. How
# many is told by a column: of a number the planner would believe, right behind a burst,
# that there are no more of them anyway, and sort all. Nobody is locked who may not
# follow: whoever has a slot for it meanwhile would pass it over.
FOLLOW = f"""
WITH registered AS MATERIALIZED (
    SELECT id FROM robust_queue_processes WHERE id = %s::uuid FOR KEY SHARE
), head AS MATERIALIZED (
    SELECT claimed.job_id, claimed.queue_name, given.key, %s::integer AS most,
        COALESCE(claimed.slot_id, given.slot_id) AS slot_id
    FROM robust_queue_claimed_executions claimed
    JOIN unnest(%s::uuid[], %s::uuid[], %s::text[], %s::uuid[])
        AS given (job_id, token, key, slot_id)
        ON given.job_id = claimed.job_id AND given.token = claimed.token
    WHERE EXISTS (SELECT 1 FROM registered)
    ORDER BY claimed.job_id
    FOR UPDATE OF claimed
), next AS MATERIALIZED (
    SELECT blocked.job_id, head.job_id AS head_id, head.slot_id FROM head
    CROSS JOIN LATERAL (
        SELECT job_id, queue_name, other_keys FROM robust_queue_blocked_executions
        WHERE concurrency_key = head.key
        ORDER BY priority, job_id LIMIT head.most
    ) line
    JOIN robust_queue_blocked_executions blocked ON blocked.job_id = line.job_id
    WHERE line.other_keys = '' AND line.queue_name = head.queue_name
        AND head.queue_name NOT IN ({PAUSED_NAMES})
    FOR UPDATE OF blocked SKIP LOCKED
), marked AS (
    UPDATE robust_queue_claimed_executions claimed SET slot_id = head.slot_id
    FROM head
    WHERE claimed.job_id = head.job_id
        AND head.job_id = ANY (ARRAY(SELECT head_id FROM next))
), gone AS (
    DELETE FROM robust_queue_blocked_executions
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM next))
    RETURNING job_id, queue_name, priority, attempts
), claimed AS (
    INSERT INTO robust_queue_claimed_executions (job_id, queue_name, priority,
        attempts, created_at, process_id, token, slot_id)
    SELECT gone.job_id, queue_name, {rank("priority")}, {ONE_MORE_ATTEMPT},
        %s::timestamptz,
        %s::uuid, %s::uuid, next.slot_id
    FROM gone JOIN next ON next.job_id = gone.job_id
    RETURNING job_id, priority, attempts
)
SELECT claimed.job_id, claimed.attempts, job.task_path, job.backend, job.queue_name,
    job.priority, job.arguments, job.enqueued_at::text, job.run_after, job.metadata,
    claimed.priority AS rank, job.concurrency_key, job.unique_key, job.partition_key,
    next.head_id
FROM claimed
JOIN next ON next.job_id = claimed.job_id
JOIN robust_queue_jobs job ON job.id = claimed.job_id
ORDER BY claimed.priority, claimed.job_id
"""
