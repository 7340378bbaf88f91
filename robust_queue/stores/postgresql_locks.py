"""The SQL with which PostgreSQL lets go of unique keys: a step of a settle."""

from .locking import OF_NO_PERIOD

# A lock that somebody keeps in an open transaction is not waited for: all outcomes
# would. It is left over then, and whoever wants it takes it over.
UNLOCK = f"""ended AS MATERIALIZED (
    SELECT key FROM robust_queue_unique_locks
    WHERE key = ANY (ARRAY(SELECT unnest(%s::text[]))) AND job_id = ANY (%s::uuid[])
        AND job_id = ANY (ARRAY(SELECT job_id FROM held))
        AND {OF_NO_PERIOD.format("robust_queue_unique_locks")}
    ORDER BY key
    FOR UPDATE SKIP LOCKED
), unlocked AS (
    DELETE FROM robust_queue_unique_locks
    WHERE key = ANY (ARRAY(SELECT key FROM ended))
)"""
