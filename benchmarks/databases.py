"""A fresh database for each measurement, and what the server counted meanwhile."""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from benchmarks.systems.base import MARIADB, POSTGRESQL, REDIS, SQLITE

NAME = "bench"
# A backend of PostgreSQL tells what it did when it ends, shortly after its client.
COUNTING_LAG = 0.3

Prepare = Callable[[str], None]


class Counts(NamedTuple):
    """What the server did for the clients of the measurement."""

    statements: int
    commits: int | None = None


class Databases(ABC):
    """The databases of one server."""

    def __init__(self, address: str) -> None:
        self.address = address

    @abstractmethod
    def fresh(self, content: str, prepare: Prepare) -> str:
        """Return the URL of a database as `prepare` leaves it, with nothing else.

        What has the same content may be prepared once and copied from then on.
        """

    def kept(self, content: str, prepare: Prepare) -> str:
        """Return the URL of a database that is as `prepare` leaves it, to be read."""
        return self.fresh(content, prepare)

    def forget(self) -> None:
        """Remove what is kept to be copied."""

    def start_counting(self) -> None:
        """Count from here."""

    def counts(self) -> Counts | None:
        """Return what was counted, if the server does."""
        return None

    @abstractmethod
    def version(self) -> str:
        """Return the version of the server."""

    def close(self) -> None:
        """Disconnect."""


class PostgreSQL(Databases):
    """Databases are copied from templates, which are vacuumed and analyzed."""

    def __init__(self, address: str) -> None:
        import psycopg

        super().__init__(address)
        self._connection = psycopg.connect(f"{address}/postgres", autocommit=True)
        self._run("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        self._templates: dict[str, str] = {}
        self._commits = 0

    def fresh(self, content: str, prepare: Prepare) -> str:
        self._create(NAME, self._template(content, prepare))
        return f"{self.address}/{NAME}"

    def kept(self, content: str, prepare: Prepare) -> str:
        return f"{self.address}/{self._template(content, prepare)}"

    def _template(self, content: str, prepare: Prepare) -> str:
        template = self._templates.get(content)
        if template is None:
            template = f"template_{len(self._templates)}"
            self._create(template)
            prepare(f"{self.address}/{template}")
            self._analyze(template)
            self._templates[content] = template
        return template

    def forget(self) -> None:
        for name in (NAME, *self._templates.values()):
            self._run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self._templates.clear()

    def _analyze(self, name: str) -> None:
        import psycopg

        with psycopg.connect(f"{self.address}/{name}", autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")

    def start_counting(self) -> None:
        self._run("SELECT pg_stat_statements_reset()")
        self._commits = self._committed()

    def counts(self) -> Counts:
        time.sleep(COUNTING_LAG)
        ((statements,),) = self._run(
            "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s "
            "JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = %s",
            NAME,
        )
        return Counts(statements, self._committed() - self._commits)

    def version(self) -> str:
        ((version,),) = self._run("SHOW server_version")
        return f"PostgreSQL {version.split()[0]}"

    def close(self) -> None:
        self._connection.close()

    def _committed(self) -> int:
        ((commits,),) = self._run(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = %s", NAME
        )
        return int(commits)

    def _create(self, name: str, template: str = "template0") -> None:
        self._run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        # A copy of files begins and ends with a checkpoint: the disk is at rest.
        self._run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")

    def _run(self, statement: str, *parameters: object) -> list[Any]:
        cursor = self._connection.execute(statement, parameters or None)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


class MariaDB(Databases):
    """Databases are prepared anew for each measurement."""

    _statements = 0

    def fresh(self, content: str, prepare: Prepare) -> str:
        self._run(f"DROP DATABASE IF EXISTS {NAME}")
        self._run(f"CREATE DATABASE {NAME}")
        url = f"{self.address}/{NAME}"
        prepare(url)
        self._analyze()
        return url

    def _analyze(self) -> None:
        tables = [name for (name,) in self._run("SHOW TABLES", database=NAME)]
        if tables:
            self._run(f"ANALYZE TABLE {', '.join(tables)}", database=NAME)

    def start_counting(self) -> None:
        self._statements = self._questions()

    def counts(self) -> Counts:
        return Counts(self._questions() - self._statements)

    def _questions(self) -> int:
        ((_, count),) = self._run("SHOW GLOBAL STATUS LIKE 'Questions'")
        return int(count)

    def version(self) -> str:
        ((version,),) = self._run("SELECT version()")
        return f"MariaDB {version.split('-')[0]}"

    def _run(self, statement: str, *, database: str = "") -> Any:
        import MySQLdb

        parts = urlsplit(self.address)
        connection = MySQLdb.connect(
            host=parts.hostname,
            port=parts.port,
            user=parts.username,
            database=database,
            autocommit=True,
        )
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return cursor.fetchall()
        finally:
            connection.close()


class SQLite(Databases):
    """Databases are files, prepared anew for each measurement."""

    def fresh(self, content: str, prepare: Prepare) -> str:
        folder = Path(urlsplit(self.address).path) / NAME
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        url = f"sqlite://{folder / 'database.sqlite3'}"
        prepare(url)
        return url

    def version(self) -> str:
        import sqlite3

        return f"SQLite {sqlite3.sqlite_version}"


class Redis(Databases):
    """There is one, and it is emptied."""

    def fresh(self, content: str, prepare: Prepare) -> str:
        self._client().flushall()
        url = f"{self.address}/0"
        prepare(url)
        return url

    def version(self) -> str:
        return f"Redis {self._client().info('server')['redis_version']}"

    def _client(self) -> Any:
        import redis

        return redis.Redis.from_url(f"{self.address}/0")


KINDS: dict[str, type[Databases]] = {
    POSTGRESQL: PostgreSQL,
    MARIADB: MariaDB,
    SQLITE: SQLite,
    REDIS: Redis,
}
