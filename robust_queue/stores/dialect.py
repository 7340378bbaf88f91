"""How values and statements are written down for one database."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

# What a semaphore tells besides its key.
COUNTED = ("value", "slots", "expires_at", "holder_id")


class Dialect:
    """Values to and from the driver, and the few statements that all others use."""

    # Below the packet size of a MySQL server in its default configuration.
    chunk_bytes = 4 * 1024 * 1024

    def __init__(self, alias: str) -> None:
        self.alias = alias

    # A store is made for each use, in the thread that uses it.

    @cached_property
    def connection(self) -> BaseDatabaseWrapper:
        return connections[self.alias]

    @cached_property
    def _has_uuids(self) -> bool:
        return self.connection.features.has_native_uuid_field

    @property
    def chunk_rows(self) -> int:
        """Rows per INSERT: below the driver's limit of parameters."""
        return 2_000

    def _skip_locked(self) -> str:
        if self.connection.features.has_select_for_update_skip_locked:
            return "FOR UPDATE SKIP LOCKED"
        return self._for_update()

    def _for_update(self) -> str:
        return "FOR UPDATE" if self.connection.features.has_select_for_update else ""

    def _as_of_now(self) -> str:
        """Makes a read see what was committed since its transaction began."""
        return ""

    def _hint(self, condition: str) -> str:
        """Names the index for databases that would otherwise choose another."""
        return ""

    def _unless_there(self) -> str:
        """Ends an INSERT into the attempts that leaves those alone that are there."""
        return "ON CONFLICT DO NOTHING"

    def _unless_counted(self) -> str:
        """Ends an INSERT of semaphores that leaves those alone that are there."""
        return "ON CONFLICT DO NOTHING"

    def _or_count_anew(self) -> str:
        """Ends an INSERT of semaphores that changes those that are there."""
        changes = ", ".join(f"{name} = excluded.{name}" for name in COUNTED)
        return f"ON CONFLICT (key) DO UPDATE SET {changes}"

    def to_id(self, value: UUID) -> Any:
        return value if self._has_uuids else value.hex

    def from_id(self, value: Any) -> UUID:
        return value if isinstance(value, UUID) else UUID(value)

    def to_time(self, value: datetime | None) -> Any:
        return self.connection.ops.adapt_datetimefield_value(value)

    def from_time(self, value: Any) -> Any:
        convert = self.connection.ops.convert_datetimefield_value  # type: ignore[attr-defined]
        return convert(value, None, self.connection)

    def _insert(
        self,
        table: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        otherwise: str = "",
    ) -> None:
        into = f"INSERT INTO robust_queue_{table} ({', '.join(columns)}) VALUES "
        marks = "(" + ", ".join(["%s"] * len(columns)) + ")"
        for chunk in self._chunks(rows):
            values = [value for row in chunk for value in row]
            given = ", ".join([marks] * len(chunk))
            self._execute(f"{into}{given} {otherwise}", values)

    def _chunks(self, rows: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
        """Rows in portions that one statement may carry."""
        chunk: list[Sequence[Any]] = []
        size, most = 0, self.chunk_rows
        for row in rows:
            width = sum([len(value) for value in row if type(value) is str])
            size += width
            if len(chunk) == most or (chunk and size > self.chunk_bytes):
                yield chunk
                chunk, size = [], width
            chunk.append(row)
        if chunk:
            yield chunk

    def _delete(self, table: str, column: str, ids: Sequence[UUID]) -> None:
        if ids:
            marks, keys = self._in(ids)
            self._execute(
                f"DELETE FROM robust_queue_{table} WHERE {column} IN ({marks})", keys
            )

    def _by_key(self, table: str, name: str = "") -> str:
        """A table whose rows are named by their keys, and locked one by one."""
        return f"robust_queue_{table} {name}"

    def _in(self, ids: Iterable[UUID]) -> tuple[str, list[Any]]:
        keys = [self.to_id(job_id) for job_id in ids]
        return ", ".join(["%s"] * len(keys)), keys

    def _execute(self, sql: str, parameters: Sequence[Any]) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters)

    def _fetch(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return list(cursor.fetchall())
