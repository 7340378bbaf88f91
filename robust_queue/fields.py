"""Columns that mean the same on every database."""

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

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
