"""Tables are emptied behind tests that commit: those that have anything in them.

Django empties every table, which takes longer than most of these tests, and then makes
the permissions anew that it has deleted.
"""

from functools import cache

from django.core.management.color import no_style
from django.db import connections

# Made by the migrations, and the same for every test.
KEPT = {"django_content_type", "auth_permission"}

# Also what was there and is gone takes room, which later tests would have to walk over.
_TAKES_ROOM = {
    "postgresql": "pg_relation_size('{}') > 0",
    "mysql": "EXISTS (SELECT 1 FROM {})",
    "sqlite": "EXISTS (SELECT 1 FROM {})",
}


def empty(case):
    """Take the place of ``TransactionTestCase._fixture_teardown``."""
    for alias in case._databases_names(include_mirrors=False):
        connection = connections[alias]
        tables = _used(connection)
        ops = connection.ops
        ops.execute_sql_flush(ops.sql_flush(no_style(), tables, allow_cascade=True))


def _used(connection):
    tables = _tables(connection.alias)
    condition = _TAKES_ROOM[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(map(condition.format, tables))}")
        found = cursor.fetchone()
    return [table for table, is_used in zip(tables, found, strict=True) if is_used]


@cache
def _tables(alias):
    names = connections[alias].introspection.django_table_names(
        only_existing=True, include_views=False
    )
    return sorted({*names} - KEPT)
