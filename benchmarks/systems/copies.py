"""Many rows from one: how a queue is filled quickly.

One job is enqueued by the API of a system; its row is the sample, and the database
itself writes the others. They differ in what is named, everything else is as the API
made it.
"""

from typing import Any

from benchmarks.systems.base import MARIADB, POSTGRESQL, SQLITE

NEW_UUID = {
    POSTGRESQL: "gen_random_uuid()",
    MARIADB: "uuid()",
    SQLITE: "lower(hex(randomblob(16)))",
}


def replicate(
    cursor: Any, kind: str, table: str, count: int, **changed: str | None
) -> None:
    """Write so many rows like the only one of a table.

    What is changed is an SQL expression that may use `number`, from 1 to the count;
    None leaves the column to its default.
    """
    if kind == MARIADB:
        cursor.execute("SET SESSION max_recursive_iterations = 4294967295")
    cursor.execute(f"SELECT * FROM {table} LIMIT 1")
    columns = [column[0] for column in cursor.description]
    cursor.fetchall()
    values = {column: changed.get(column, f"sample.{column}") for column in columns}
    written = {column: value for column, value in values.items() if value is not None}
    cursor.execute(
        f"""
        INSERT INTO {table} ({", ".join(written)})
        WITH RECURSIVE numbers (number) AS (
            SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {count:d}
        )
        SELECT {", ".join(written.values())}
        FROM numbers CROSS JOIN (SELECT * FROM {table} LIMIT 1) AS sample
        """
    )


def renumbered(kind: str, column: str) -> str:
    """Return the SQL of a JSON column whose only argument is the row's own number."""
    if kind == MARIADB:
        return f"replace(sample.{column}, '[0]', concat('[', number, ']'))"
    text, back = ("::text", "::jsonb") if kind == POSTGRESQL else ("", "")
    return f"replace(sample.{column}{text}, '[0]', '[' || number || ']'){back}"
