"""SQLite: one writer at a time, so nothing needs to be locked row by row."""

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.conf import settings

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

    # What Django does with moments, for the case that nearly everybody has.

    def to_time(self, value: datetime | None) -> Any:
        if value is None or value.tzinfo is not UTC or not self._keeps_utc:
            return super().to_time(value)
        return str(value.replace(tzinfo=None))

    def from_time(self, value: Any) -> Any:
        if not isinstance(value, str) or not self._keeps_utc:
            return super().from_time(value)
        return datetime.fromisoformat(value).replace(tzinfo=UTC)

    @cached_property
    def _keeps_utc(self) -> bool:
        return settings.USE_TZ and self.connection.timezone_name == "UTC"

    def _looks_first(self, *, is_likely: bool) -> bool:
        # A transaction keeps all others from writing, and mostly there is nothing.
        return True

    def _poll(
        self,
        condition: str,
        parameters: Sequence[Any],
        limit: int,
        taken: Sequence[UUID],
        *,
        unless: str = "",
        asked: Sequence[Any] = (),
    ) -> list[UUID]:
        # It would be asked for every single row. And nobody else writes meanwhile.
        if unless and self._fetch(f"SELECT 1 WHERE {unless}", asked):
            return []
        return super()._poll(condition, parameters, limit, taken)
