"""Columns that mean the same on every database."""

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

_BYTEWISE = {"postgresql": "C", "mysql": "utf8mb4_bin", "sqlite": "BINARY"}


class IdField(models.UUIDField):  # type: ignore[type-arg]
    """A UUID that sorts like its bytes, and so like time."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        if (
            connection.vendor == "mysql"
            and not connection.features.has_native_uuid_field
        ):
            # MySQL: four bytes per hexadecimal digit would bloat every index.
            return "char(32) CHARACTER SET ascii COLLATE ascii_bin"
        return super().db_type(connection)


class NameField(models.CharField):  # type: ignore[type-arg]
    """A name compared byte by byte, whatever the database's collation is.

    Otherwise ``mail`` and ``Mail`` would be one queue on MariaDB and two elsewhere,
    and a prefix could not be looked up in an index of PostgreSQL.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        parameters = super().db_parameters(connection)
        return {**parameters, "collation": _BYTEWISE.get(connection.vendor)}


class UtcField(models.DateTimeField):  # type: ignore[type-arg]
    """A moment that is kept in UTC, and read as the project reads any other moment.

    Without USE_TZ, MySQL and SQLite keep wall time, of which an hour is missing when
    the clocks go forward. Whoever measures by such a column would see everybody fall
    silent for that hour. A column of PostgreSQL keeps instants anyway.
    """

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        # The column is like any other: no migration has to know of this class.
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.DateTimeField", args, kwargs

    def from_db_value(
        self, value: Any, expression: Any, connection: BaseDatabaseWrapper
    ) -> Any:
        if value is None or _keeps_instants(connection):
            return value
        moment = value.replace(tzinfo=UTC)
        return moment if settings.USE_TZ else timezone.make_naive(moment, _here())

    def get_db_prep_value(
        self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> Any:
        value = value if prepared else self.get_prep_value(value)
        if isinstance(value, datetime) and not _keeps_instants(connection):
            aware = value if timezone.is_aware(value) else value.replace(tzinfo=_here())
            value = timezone.make_naive(aware, UTC)
        return super().get_db_prep_value(value, connection, prepared=True)


def _keeps_instants(connection: BaseDatabaseWrapper) -> bool:
    return connection.vendor == "postgresql"


_here = timezone.get_default_timezone
