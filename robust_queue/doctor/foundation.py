"""Without these nothing else can be asked: a database, and the tables in it."""

from collections.abc import Iterator

from django.apps import apps
from django.db import Error, connections

from robust_queue.checks.tables import APP, pending_migrations

from .findings import Finding


def examine(database: str) -> list[Finding]:
    """What keeps the database from being used at all."""
    try:
        with connections[database].cursor() as cursor:
            cursor.execute("SELECT 1")
        return list(_judge_tables(database))
    except Error as error:
        text = f"Database {database!r} cannot be used: {error}".strip()
        return [Finding("problem", text)]


def _judge_tables(database: str) -> Iterator[Finding]:
    if pending := pending_migrations(database):
        text = f"Migrations are not applied: run migrate --database {database}."
        yield Finding("problem", text, tuple(pending))
    elif missing := _missing(database):
        # Recorded as applied, but a router kept the tables out of this database.
        text = f"Database {database!r} lacks tables: does a router keep them out?"
        yield Finding("problem", text, missing)


def _missing(database: str) -> tuple[str, ...]:
    there = set(connections[database].introspection.table_names())
    tables = {model._meta.db_table for model in apps.get_app_config(APP).get_models()}
    return tuple(sorted(tables - there))
