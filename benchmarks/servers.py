"""The servers of the benchmarks: their own, on the loopback, with durability on.

PostgreSQL and MariaDB wait for the disk at each commit, as they do out of the box; more
memory than the defaults is all they are given. Redis keeps nothing, as it does in most
installations as a broker. All of them end with the run.
"""

import os
import shutil
import signal
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.systems.base import MARIADB, POSTGRESQL, REDIS, SQLITE
from tests.private_servers import (
    mariadb_programs,
    mariadb_server,
    postgresql_programs,
    postgresql_server,
)
from tests.server_process import Server, ServiceError, private_folder, running

# On the disk wherever the folder of temporary files is in memory.
PLACE = "/var/tmp"  # noqa: S108
LOOPBACK = "127.0.0.1"

POSTGRESQL_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "30min",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "top",
    "track_io_timing": "off",
}
MARIADB_SETTINGS = {
    "innodb-flush-log-at-trx-commit": "1",
    "innodb-buffer-pool-size": "512M",
    "innodb-log-file-size": "1G",
}
REDIS_SETTINGS = {"save": "", "appendonly": "no"}

SETTINGS = {
    POSTGRESQL: POSTGRESQL_SETTINGS,
    MARIADB: MARIADB_SETTINGS,
    SQLITE: {"journal_mode": "WAL", "synchronous": "NORMAL"},
    REDIS: REDIS_SETTINGS,
}


@contextmanager
def started(kinds: Iterable[str]) -> Iterator[dict[str, str]]:
    """Run the servers of these kinds, and tell the address of each, without a slash."""
    starters = {
        POSTGRESQL: _postgresql,
        MARIADB: _mariadb,
        SQLITE: _sqlite,
        REDIS: _redis,
    }
    with ExitStack() as stack:
        yield {kind: stack.enter_context(starters[kind]()) for kind in kinds}


@contextmanager
def _postgresql() -> Iterator[str]:
    port = _free_port()
    settings = [f"--{name}={value}" for name, value in POSTGRESQL_SETTINGS.items()]
    listening = f"--listen_addresses={LOOPBACK}"
    with postgresql_server(listening, *settings, port=port, durable=True, place=PLACE):
        yield f"postgresql://postgres@{LOOPBACK}:{port}"


@contextmanager
def _mariadb() -> Iterator[str]:
    port = _free_port()
    listening = ["--skip-networking=0", f"--bind-address={LOOPBACK}", f"--port={port}"]
    settings = [f"--{name}={value}" for name, value in MARIADB_SETTINGS.items()]
    with mariadb_server(*listening, *settings, durable=True, place=PLACE):
        yield f"mariadb://root@{LOOPBACK}:{port}"


@contextmanager
def _sqlite() -> Iterator[str]:
    with private_folder(PLACE) as folder:
        yield f"sqlite://{folder}"


@contextmanager
def _redis() -> Iterator[str]:
    program = redis_program()
    port = _free_port()
    with private_folder(PLACE) as folder:
        place = ["--bind", LOOPBACK, "--port", str(port), "--dir", str(folder)]
        settings = [
            word
            for name, value in REDIS_SETTINGS.items()
            for word in (f"--{name}", value)
        ]
        server = Server(
            f"redis://{LOOPBACK}:{port}",
            [program, *place, *settings],
            folder,
            stop=signal.SIGTERM,
            crash=signal.SIGKILL,
            is_up=lambda: _answers(port),
        )
        with running(server):
            yield server.url


def lack(kind: str) -> str:
    """Say what is missing for a server of this kind, if something is."""
    programs = {
        POSTGRESQL: postgresql_programs,
        MARIADB: mariadb_programs,
        REDIS: redis_program,
    }
    try:
        programs.get(kind, str)()
    except ServiceError as error:
        return str(error)
    return ""


def redis_program() -> str:
    """Return the program of a Redis server."""
    for name in ("redis-server", "valkey-server"):
        if program := shutil.which(name):
            return program
    raise ServiceError("No Redis server: install the package redis-server.")


def is_on_disk(place: str = PLACE) -> bool:
    """Tell whether the servers' folder is on a disk rather than in memory."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    kinds = {target: kind for _, target, kind, *_ in mounts}
    folder = Path(os.path.realpath(place))
    mounted = next(each for each in [folder, *folder.parents] if str(each) in kinds)
    return kinds[str(mounted)] not in {"tmpfs", "ramfs"}


def _free_port() -> int:
    with socket.socket() as door:
        door.bind((LOOPBACK, 0))
        return int(door.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((LOOPBACK, port)) == 0
