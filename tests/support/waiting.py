"""Who waits for a lock, as the server itself tells it."""

from django.db import connection

from tests.support.supervisors import until

_WAITING = {
    "postgresql": (
        "SELECT COUNT(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    ),
    # Not its table of transactions, which is made anew only for those who ask seldom.
    "mysql": "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'",
}


def until_somebody_waits():
    """Wait until another connection waits for a lock that somebody has."""
    until(_somebody_waits, "somebody waits for a lock")


def _somebody_waits():
    with connection.cursor() as cursor:
        cursor.execute(_WAITING[connection.vendor])
        return int(cursor.fetchone()[-1])
