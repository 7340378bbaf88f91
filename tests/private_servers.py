"""Private PostgreSQL and MariaDB servers, each in a temporary folder of its own.

They listen on a unix socket only, so ports never clash; they run as an unprivileged
user, since both refuse root; and they do not wait for the disk, since their data
lives no longer than the tests. Each is a context manager that yields its URL.

A forked child inherits these context managers, and may leave them when it ends, but
only the process that entered one stops the server or removes the folder.
"""
# Every command here is made of constants and of programs found on PATH.

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

SECONDS_TO_START = 60
SECONDS_TO_STOP = 20

POSTGRESQL_OPTIONS = [
    "--listen_addresses=",
    "--port=5432",
    "--max_connections=200",
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
    "--innodb-flush-log-at-trx-commit=0",
    "--loose-innodb-flush-method=nosync",
]

Command = list[str | Path]


class ServiceError(RuntimeError):
    """A database server is missing, misnamed or does not start."""


@contextmanager
def private_postgresql() -> Iterator[str]:
    """Run a PostgreSQL server for the block."""
    programs = postgresql_programs()
    with private_folder() as folder:
        data: Command = ["-D", folder / "data"]
        account = ["--username=postgres", "--auth=trust", "--no-sync"]
        text = ["--encoding=UTF8", "--locale=C.UTF-8"]
        _prepare([programs / "initdb", *data, *account, *text], folder)
        command: Command = [
            programs / "postgres",
            *data,
            "-k",
            folder,
            *POSTGRESQL_OPTIONS,
        ]
        ready: Command = [programs / "pg_isready", "-q", "-h", folder, "-p", "5432"]
        # SIGINT disconnects the clients; SIGTERM would wait for them to leave.
        with _running(command, folder, stop=signal.SIGINT) as server:
            _wait(server, folder, until=lambda: _succeeds(ready))
            yield f"postgresql://postgres@/?socket={folder}"


@contextmanager
def private_mariadb() -> Iterator[str]:
    """Run a MariaDB server for the block."""
    program, install = mariadb_programs()
    with private_folder() as folder:
        # MariaDB takes --no-defaults in the first place only.
        # A folder of its own for temporary tables: a server that starts clears away
        # what it takes for leftovers, also those of another server in the same place.
        data = ["--no-defaults", f"--datadir={folder / 'data'}", f"--tmpdir={folder}"]
        account = ["--auth-root-authentication-method=normal", "--skip-test-db"]
        _prepare([install, *data, *account], folder)
        door = folder / "s.sock"
        files = [f"--socket={door}", f"--pid-file={folder / 'pid'}"]
        command: Command = [program, *data, *files, *MARIADB_OPTIONS]
        with _running(command, folder, stop=signal.SIGTERM) as server:
            _wait(server, folder, until=lambda: _greets(door))
            yield f"mariadb://root@/?socket={door}"


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that the servers' account owns; remove it after the block."""
    owner = os.getpid()
    # The path of a socket may not exceed 107 bytes, and the account that runs the
    # server has to reach it: TMPDIR may be long, or closed to that account.
    # The name tells whose it is, should a SIGKILL leave it behind.
    folder = Path(tempfile.mkdtemp(prefix=f"rq-{owner}-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            os.chown(folder, *_unprivileged())
        yield folder
    finally:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


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
    # The PATH of an ordinary user on Debian lacks the folder of the server.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    program = shutil.which("mariadbd", path=path)
    install = shutil.which("mariadb-install-db", path=path)
    if not (program and install):
        raise ServiceError(
            "No MariaDB server: install the packages mariadb-server-core and "
            "mariadb-client-core."
        )
    return program, install


def _version(initdb: Path) -> int:
    major = initdb.parent.parent.name
    return int(major) if major.isdigit() else 0


def _prepare(command: Command, folder: Path) -> None:
    with _log(folder) as log:
        command = [*_guard(signal.SIGTERM), *command]
        done = subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=False)
    if done.returncode:
        raise ServiceError(f"No server could be prepared: {_last_words(folder)}")


@contextmanager
def _running(
    command: Command, folder: Path, *, stop: signal.Signals
) -> Iterator[subprocess.Popen[bytes]]:
    owner = os.getpid()
    with _log(folder) as log:
        command = [*_guard(stop), *command]
        # Its own session: Ctrl-C is for pytest, which still needs the server then.
        server = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield server
    finally:
        if os.getpid() == owner:
            _stop(server, stop)


def _guard(stop: signal.Signals) -> Command:
    """Return the prefix that gives up root's rights and ties life to life.

    Even a SIGKILL of this process, which runs no exit handler, ends the server.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return []
    uid, gid = _unprivileged()
    account = [f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    together = f"--pdeathsig={stop.name.removeprefix('SIG')}"
    return [setpriv, together, *(account if os.geteuid() == 0 else [])]


def _unprivileged() -> tuple[int, int]:
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def _wait(
    server: subprocess.Popen[bytes], folder: Path, *, until: Callable[[], bool]
) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while not until():
        if server.poll() is not None or time.monotonic() > deadline:
            raise ServiceError(f"A server does not start: {_last_words(folder)}")
        time.sleep(0.05)


def _stop(server: subprocess.Popen[bytes], stop: signal.Signals) -> None:
    server.send_signal(stop)
    try:
        server.wait(SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


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


def _log(folder: Path) -> IO[bytes]:
    return (folder / "log").open("ab")


def _last_words(folder: Path) -> str:
    lines = (folder / "log").read_text(errors="replace").splitlines()
    return " / ".join(line.strip() for line in lines[-6:] if line.strip())
