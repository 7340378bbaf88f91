"""Private PostgreSQL and MariaDB servers, each in a temporary folder of its own.

They listen on a unix socket only, so ports never clash, and they do not wait for the
disk, since their data lives no longer than the tests; the benchmarks ask for servers
that do. Each is a context manager that yields its URL, or the server itself for those
who want to stop and start it. PgBouncer can stand in front of any PostgreSQL.
"""
# Every command here is made of constants and of programs found on PATH.

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.server_process import (
    PLACE,
    Command,
    Server,
    ServiceError,
    prepare,
    private_folder,
    running,
)

POSTGRESQL_OPTIONS = ["--listen_addresses=", "--max_connections=300"]
POSTGRESQL_WITHOUT_WAITING = [
    "--fsync=off",
    "--full_page_writes=off",
    "--synchronous_commit=off",
]
MARIADB_OPTIONS = [
    "--skip-networking",
    "--skip-log-bin",
    "--max-connections=200",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_unicode_ci",
]
MARIADB_WITHOUT_WAITING = [
    "--innodb-flush-log-at-trx-commit=0",
    "--loose-innodb-flush-method=nosync",
]
PGBOUNCER_PORT = 6432
PGBOUNCER_OPTIONS = [
    "listen_addr =",
    f"listen_port = {PGBOUNCER_PORT}",
    "auth_type = trust",
    "max_client_conn = 200",
]


@contextmanager
def private_postgresql() -> Iterator[str]:
    """Run a PostgreSQL server for the block."""
    with postgresql_server() as server:
        yield server.url


@contextmanager
def private_mariadb() -> Iterator[str]:
    """Run a MariaDB server for the block."""
    with mariadb_server() as server:
        yield server.url


@contextmanager
def postgresql_server(
    *options: str, port: int = 5432, durable: bool = False, place: str = PLACE
) -> Iterator[Server]:
    """Run a PostgreSQL server for the block, which may stop and start it."""
    programs = postgresql_programs()
    with private_folder(place) as folder:
        data: Command = ["-D", folder / "data"]
        account = ["--username=postgres", "--auth=trust", "--no-sync"]
        text = ["--encoding=UTF8", "--locale=C.UTF-8"]
        prepare([programs / "initdb", *data, *account, *text], folder)
        command: Command = [
            programs / "postgres",
            *data,
            "-k",
            folder,
            f"--port={port}",
            *POSTGRESQL_OPTIONS,
            *([] if durable else POSTGRESQL_WITHOUT_WAITING),
            *options,
        ]
        ready: Command = [programs / "pg_isready", "-q", "-h", folder, f"-p{port}"]
        server = Server(
            f"postgresql://postgres@/?socket={folder}",
            command,
            folder,
            # SIGINT disconnects the clients; SIGTERM would wait for them to leave.
            stop=signal.SIGINT,
            # SIGKILL would leave its children behind.
            crash=signal.SIGQUIT,
            is_up=lambda: _succeeds(ready),
        )
        with running(server):
            yield server


@contextmanager
def mariadb_server(
    *options: str, durable: bool = False, place: str = PLACE
) -> Iterator[Server]:
    """Run a MariaDB server for the block, which may stop and start it."""
    program, install = mariadb_programs()
    with private_folder(place) as folder:
        # MariaDB takes --no-defaults in the first place only.
        # A folder of its own for temporary tables: a server that starts clears away
        # what it takes for leftovers, also those of another server in the same place.
        data = ["--no-defaults", f"--datadir={folder / 'data'}", f"--tmpdir={folder}"]
        account = ["--auth-root-authentication-method=normal", "--skip-test-db"]
        prepare([install, *data, *account], folder)
        door = folder / "s.sock"
        files = [f"--socket={door}", f"--pid-file={folder / 'pid'}"]
        waiting = [] if durable else MARIADB_WITHOUT_WAITING
        server = Server(
            f"mariadb://root@/?socket={door}",
            [program, *data, *files, *MARIADB_OPTIONS, *waiting, *options],
            folder,
            stop=signal.SIGTERM,
            crash=signal.SIGKILL,
            is_up=lambda: _greets(door),
        )
        with running(server):
            yield server


@contextmanager
def pgbouncer_server(*options: str, users: str, target: str) -> Iterator[Server]:
    """Run PgBouncer for the block, in front of the PostgreSQL that is named."""
    program = pgbouncer_program()
    with private_folder() as folder:
        ends = [f"unix_socket_dir = {folder}", f"auth_file = {folder / 'users'}"]
        lines = ["[databases]", f"* = {target}", "[pgbouncer]", *PGBOUNCER_OPTIONS]
        lines += [*options, *ends]
        settings = _shown(folder / "pgbouncer.ini", "\n".join(lines))
        _shown(folder / "users", users)
        server = Server(
            f"postgresql:///?socket={folder}",
            [program, settings],
            folder,
            # Whatever its version: the other signals let some wait for the clients.
            stop=signal.SIGQUIT,
            crash=signal.SIGKILL,
            is_up=lambda: _listens(folder / f".s.PGSQL.{PGBOUNCER_PORT}"),
        )
        with running(server):
            yield server


def postgresql_programs() -> Path:
    """Return the folder of PostgreSQL's server programs, the newest if several."""
    # Debian keeps the server's programs off PATH, in one folder for each version.
    installed = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    on_path = shutil.which("initdb")
    # A link on PATH may stand alone: the folder it points to holds all programs.
    linked = [Path(on_path).resolve()] if on_path else []
    found = linked or sorted(installed, key=_version)
    if not found:
        raise ServiceError("No PostgreSQL server: install the package postgresql.")
    return found[-1].parent


def mariadb_programs() -> tuple[str, str]:
    """Return MariaDB's server program and the one that prepares its data folder."""
    program, install = _program("mariadbd"), _program("mariadb-install-db")
    if not (program and install):
        raise ServiceError(
            "No MariaDB server: install the packages mariadb-server-core and "
            "mariadb-client-core."
        )
    return program, install


def pgbouncer_program() -> str:
    """Return PgBouncer's program."""
    program = _program("pgbouncer")
    if not program:
        raise ServiceError("No PgBouncer: install the package pgbouncer.")
    return program


def _program(name: str) -> str | None:
    # The PATH of an ordinary user on Debian lacks the folder of the servers.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    return shutil.which(name, path=path)


def _version(initdb: Path) -> int:
    major = initdb.parent.parent.name
    return int(major) if major.isdigit() else 0


def _succeeds(command: Command) -> bool:
    return subprocess.run(command, check=False).returncode == 0


def _greets(door: Path) -> bool:
    """Tell whether MariaDB answers: it speaks first when a client connects."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(str(door))
            return bool(client.recv(1))
        except OSError:
            return False


def _shown(file: Path, text: str) -> Path:
    """Write what the servers' account has to read."""
    file.write_text(text)
    file.chmod(0o644)
    return file


def _listens(door: Path) -> bool:
    """Tell whether somebody takes calls there."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(door)) == 0
