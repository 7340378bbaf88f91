"""Database servers for the tests: the one the environment names, or a private one.

A server that is running already is named by a URL:

    RQ_POSTGRESQL_URL=postgresql://user:password@host:5432
    RQ_MARIADB_URL=mariadb://user:password@host:3306

or, when it listens on a unix socket, by the folder of the socket (PostgreSQL) or
by the socket itself (MariaDB):

    RQ_POSTGRESQL_URL=postgresql://user@/?socket=/folder
    RQ_MARIADB_URL=mariadb://user@/?socket=/folder/file.sock

The user must be allowed to create databases. Their names come from RQ_RUN, which
is unique to each run, so a path in the URL is ignored.

Where no server is named a private one starts in a temporary folder and its URL is
put into the environment, so that sub-processes and pytest-xdist workers share it.
The process that started a server stops it and removes the folder when it ends.

Only the standard library is imported: `.ci/dev.py` loads this file before any
virtual environment exists.
"""

import atexit
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.private_servers import private_mariadb, private_postgresql
from tests.server_process import ServiceError, private_folder

VARIABLES = {
    "sqlite": "RQ_SQLITE_FOLDER",
    "postgresql": "RQ_POSTGRESQL_URL",
    "mariadb": "RQ_MARIADB_URL",
}
PRIVATE = {
    "sqlite": private_folder,
    "postgresql": private_postgresql,
    "mariadb": private_mariadb,
}


def database(kind: str, name: str = "default") -> dict[str, Any]:
    """Return the DATABASES entry of a database that belongs to this run alone.

    NAME is the name of the test database, so that a sub-process of a test which
    merely imports the settings meets the database of its test.
    """
    if kind not in VARIABLES:
        raise ServiceError(f"No database {kind!r}: choose from {', '.join(VARIABLES)}.")
    return entry(kind, _address(kind), _unique(name))


def entry(kind: str, address: str, name: str) -> dict[str, Any]:
    """Return the DATABASES entry of the database of that name at that address."""
    entries = {"sqlite": _sqlite, "postgresql": _postgresql, "mariadb": _mariadb}
    return entries[kind](address, name)


@contextmanager
def ensure_servers(kinds: Iterable[str]) -> Iterator[None]:
    """Keep a server of each kind running, and in the environment, for the block."""
    with ExitStack() as stack:
        for kind in kinds:
            if not is_named(kind):
                stack.enter_context(_private(kind))
        yield


def is_named(kind: str) -> bool:
    """Tell whether the environment names a server of this kind."""
    return bool(os.environ.get(VARIABLES[kind]))


def _sqlite(folder: str, name: str) -> dict[str, Any]:
    # A file, because a database in memory is invisible to threads and processes.
    path = str(Path(folder) / name)
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path + _worker_suffix(),
        "OPTIONS": {
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
        },
        "TEST": {"NAME": path},
    }


def _postgresql(url: str, name: str) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name + _worker_suffix(),
        **_credentials(url, port=5432),
        "TEST": {"NAME": name},
    }


def _mariadb(url: str, name: str) -> dict[str, Any]:
    utf8 = {"CHARSET": "utf8mb4", "COLLATION": "utf8mb4_unicode_ci"}
    return {
        "ENGINE": "django.db.backends.mysql",
        "NAME": name + _worker_suffix(),
        **_credentials(url, port=3306),
        "OPTIONS": {"charset": "utf8mb4"},
        "TEST": {"NAME": name, **utf8},
    }


def _credentials(url: str, *, port: int) -> dict[str, str]:
    parts = urlsplit(url)
    sockets = parse_qs(parts.query).get("socket", [])
    return {
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": sockets[0] if sockets else parts.hostname or "",
        "PORT": str(parts.port or port),
    }


def _unique(name: str) -> str:
    run = os.environ.setdefault("RQ_RUN", str(os.getpid()))
    return f"rq_{run}_{name}".replace("-", "_")


def _worker_suffix() -> str:
    # pytest-django adds this to TEST NAME in a worker of pytest-xdist, not to NAME.
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    return f"_{worker}" if worker else ""


def _address(kind: str) -> str:
    if not is_named(kind):
        resources = ExitStack()
        resources.enter_context(_private(kind))
        atexit.register(resources.close)
    return os.environ[VARIABLES[kind]]


@contextmanager
def _private(kind: str) -> Iterator[None]:
    with PRIVATE[kind]() as address:
        os.environ[VARIABLES[kind]] = str(address)
        try:
            yield
        finally:
            os.environ.pop(VARIABLES[kind], None)
