"""Races that are really run: nobody goes on before the other one waits."""

import time

from django.db import connection

PATIENCE = 30

_WAITING = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'",
    "mysql": "SELECT count(*) FROM information_schema.innodb_trx trx"
    " JOIN information_schema.processlist process"
    " ON process.id = trx.trx_mysql_thread_id"
    " WHERE trx.trx_state = 'LOCK WAIT' AND process.db = DATABASE()",
}


def blocked(racing):
    """Wait until a call in another thread waits for a lock, or is through."""
    end = time.monotonic() + PATIENCE
    while not racing.done() and not _is_anybody_waiting():
        assert time.monotonic() < end, "It neither ended nor waited."
        time.sleep(0.15)  # MariaDB tells nothing new to whoever asks more often
    return racing


def _is_anybody_waiting():
    with connection.cursor() as cursor:
        cursor.execute(_WAITING[connection.vendor])
        return cursor.fetchone()[0] > 0
