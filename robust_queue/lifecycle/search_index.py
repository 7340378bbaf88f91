"""The index that finds jobs by what is in their arguments, on PostgreSQL.

Nobody has it who has not asked for it: it takes half as much room as the jobs
themselves, and half of the speed of bulk enqueueing. Without it a search looks through
the newest jobs, some thousand at a time.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from django.db import Error, connections

from robust_queue.exceptions import RobustQueueError

NAME = "rqueue_search_arguments"
TABLE = "robust_queue_jobs"

# For so many seconds a process takes for granted what it has seen.
MEMORY = 60.0
# What a rebuild that was interrupted leaves behind, beside the index itself.
LEFTOVERS = (f"{NAME}_ccnew", f"{NAME}_ccold")

_INDEX = """
SELECT i.indisvalid, pg_relation_size(c.oid) FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass(%s) AND c.relname = %s
"""
_EXTENSION = """
SELECT quote_ident(n.nspname) FROM pg_extension e
JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'
"""

_TIMEOUTS = (
    "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"
)
_SET_TIMEOUTS = (
    "SELECT set_config('statement_timeout', %s, false), "
    "set_config('lock_timeout', %s, false)"
)

# Three letters or digits in a row: what such an index is made of.
_TRIGRAM = re.compile(r"[A-Za-z0-9]{3}")

# SQLSTATEs: somebody else may do that, or the server lacks the files of the extension.
_FORBIDDEN = "42501"
_LACKING = {"58P01", "0A000"}

_seen: dict[str, tuple[float, bool]] = {}


class SearchIndexError(RobustQueueError):
    """The index cannot be made or removed here; the message tells what would help."""


@dataclass(frozen=True, slots=True)
class Status:
    """Whether the index is there, whole, and how large."""

    exists: bool = False
    # One whose building was interrupted is kept up to date, and finds nothing.
    is_valid: bool = False
    size: int = 0


def is_there(database: str) -> bool:
    """May a search rely on the index? Asks the database once a minute at most."""
    now = time.monotonic()
    seen_at, found = _seen.get(database, (0.0, False))
    if database not in _seen or now - seen_at > MEMORY:
        found = is_possible(database) and status(database).is_valid
        _seen[database] = (now, found)
    return found


def finds(database: str, text: str) -> bool:
    """Does the index lead to the jobs with this text in their arguments?

    Whatever has no three letters or digits in a row is in no such index.
    """
    return bool(_TRIGRAM.search(text)) and is_there(database)


def is_possible(database: str) -> bool:
    """Can this database have such an index?"""
    return connections[database].vendor == "postgresql"


def status(database: str) -> Status:
    """What the catalogue says of the index. One statement."""
    _demand_postgresql(database)
    found = _fetch(database, _INDEX, TABLE, NAME)
    return Status(True, *found) if found else Status()


def create(database: str) -> bool:
    """Build the index while everybody goes on working; False if it was there.

    One whose building was interrupted is built anew. That is never done by removing it
    first: it might be somebody else's who is building it at this moment, and whoever
    waits for that to end would remove it when it is whole. ``REINDEX`` waits as well,
    and at worst does again what has just been done.
    """
    before = status(database)
    with _without_hurry(database):
        for name in LEFTOVERS:
            _execute(database, f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        if before.is_valid:
            return False
        if before.exists:
            _execute(database, f"REINDEX INDEX CONCURRENTLY {NAME}")
        else:
            _build(database, _schema_of_trigrams(database))
    _seen.pop(database, None)
    return True


def drop(database: str) -> bool:
    """Remove the index while everybody goes on working; False if there was none."""
    exists = status(database).exists
    with _without_hurry(database):
        for name in (NAME, *LEFTOVERS):
            _execute(database, f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    _seen.pop(database, None)
    return exists


def _build(database: str, schema: str) -> None:
    _execute(
        database,
        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {NAME} ON {TABLE} "
        f"USING gin (arguments {schema}.gin_trgm_ops)",
    )


def _schema_of_trigrams(database: str) -> str:
    """Where the extension is, which may be no schema that is searched."""
    if not _fetch(database, _EXTENSION):
        _execute(database, "CREATE EXTENSION IF NOT EXISTS pg_trgm")
    (schema,) = _fetch(database, _EXTENSION)
    return str(schema)


def _demand_postgresql(database: str) -> None:
    connection = connections[database]
    if connection.vendor != "postgresql":
        raise SearchIndexError(
            f"Only PostgreSQL can index what is in arguments, and {database!r} is "
            f"{connection.display_name}. A search looks through the newest jobs."
        )


@contextmanager
def _without_hurry(database: str) -> Iterator[None]:
    """For statements that take as long as they take, whatever others are allowed."""
    before = _fetch(database, _TIMEOUTS)
    _fetch(database, _SET_TIMEOUTS, "0", "0")
    try:
        yield
    finally:
        # Where the connection is lost, so are they.
        with suppress(Error):
            _fetch(database, _SET_TIMEOUTS, *before)


def _execute(database: str, statement: str) -> None:
    try:
        with connections[database].cursor() as cursor:
            cursor.execute(statement)
    except Error as error:
        raise SearchIndexError(_explained(statement, error)) from error


def _fetch(database: str, statement: str, *parameters: str) -> Any:
    with connections[database].cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchone()


def _explained(statement: str, error: Error) -> str:
    told = str(error).strip().splitlines()[0]
    code = getattr(error.__cause__, "sqlstate", None)
    if "EXTENSION" in statement and code == _FORBIDDEN:
        return (
            f"{told}. Have somebody who may run this in the same database, "
            "then try again: CREATE EXTENSION pg_trgm"
        )
    if "EXTENSION" in statement and code in _LACKING:
        return (
            f"{told}. The server lacks pg_trgm, which comes with PostgreSQL: its "
            "package is called postgresql-contrib, or the like."
        )
    if code == _FORBIDDEN:
        return f"{told}. Do this as the user that runs the migrations: it owns {TABLE}."
    return f"{told}. What was begun is taken up again by the next --create."
