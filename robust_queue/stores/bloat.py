"""Bloat: dead rows that the head of a hot table has to be read past.

Only PostgreSQL keeps them there. Its vacuum takes them away, unless somebody holds a
transaction open that could still see them.
"""

from datetime import timedelta
from typing import NamedTuple

from django.db import connections

# Fewer are what a busy queue has between two vacuums.
WORTH_TELLING = 50_000
LONG = timedelta(minutes=10)

_DEAD = """
SELECT relname, n_dead_tup FROM pg_stat_user_tables
WHERE relname IN ('robust_queue_ready_executions', 'robust_queue_claimed_executions',
                  'robust_queue_scheduled_executions', 'robust_queue_semaphores')
  AND schemaname = ANY (current_schemas(false))
  AND n_dead_tup > %s AND n_dead_tup > 2 * n_live_tup
ORDER BY n_dead_tup DESC
"""

_OLDEST = """
SELECT EXTRACT(EPOCH FROM now() - MIN(xact_start)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND backend_type = 'client backend'
"""


class Bloat(NamedTuple):
    """Tables with many dead rows, and for how long a transaction has been open."""

    tables: dict[str, int]
    # Told only where there are such tables: it is what keeps them so.
    oldest_transaction: timedelta | None = None


def bloat(database: str) -> Bloat:
    """What there is of it. One statement where all is well, none but on PostgreSQL."""
    connection = connections[database]
    if connection.vendor != "postgresql":
        return Bloat({})
    with connection.cursor() as cursor:
        cursor.execute(_DEAD, [WORTH_TELLING])
        tables = dict(cursor.fetchall())
        if not tables:
            return Bloat({})
        cursor.execute(_OLDEST)
        seconds = cursor.fetchone()[0]
    oldest = timedelta(seconds=float(seconds or 0))
    return Bloat(tables, oldest if oldest > LONG else None)
