"""SQLite: one writer at a time, so nothing needs to be locked row by row."""

import sqlite3

from .base import Store
from .records import JOB_COLUMNS


class SQLiteStore(Store):
    """As it stands: Django's features say that there is nothing to lock."""

    @property
    def chunk_rows(self) -> int:
        """As many as this build of SQLite has room for in parameters."""
        self.connection.ensure_connection()
        room = self.connection.connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
        return int(room) // len(JOB_COLUMNS)

    def _looks_first(self, *, is_likely: bool) -> bool:
        # A transaction keeps all others from writing, and mostly there is nothing.
        return True
