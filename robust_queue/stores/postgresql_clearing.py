"""The SQL with which PostgreSQL clears a batch: one statement, one commit."""

from .clearing import State

_CLEAR = """
WITH ended AS MATERIALIZED (
    SELECT job_id FROM robust_queue_{state}_executions
    WHERE job_id = ANY (%s::uuid[]) AND finished_at < %s::timestamptz
    ORDER BY job_id
    FOR UPDATE SKIP LOCKED
), attempted AS (
    DELETE FROM robust_queue_attempts
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM ended))
), isolated AS (
    DELETE FROM robust_queue_isolated_runs
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM ended))
), job AS (
    DELETE FROM robust_queue_jobs
    WHERE id = ANY (ARRAY(SELECT job_id FROM ended))
)
DELETE FROM robust_queue_{state}_executions
WHERE job_id = ANY (ARRAY(SELECT job_id FROM ended))
RETURNING job_id
"""

# Each by its key, whatever the planner thinks of the tables, of which it may know one
# and not yet the other. Of rows that are bounded it makes no other join.
JOBS_THAT_ENDED = """LATERAL (
    SELECT id, task_path, backend, queue_name FROM robust_queue_jobs
    WHERE id = ended.job_id LIMIT 1
) job"""

CLEAR: dict[State, str] = {
    "finished": _CLEAR.format(state="finished"),
    "failed": _CLEAR.format(state="failed"),
}
