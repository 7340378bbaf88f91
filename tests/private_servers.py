"""Private PostgreSQL and MariaDB servers, each in a temporary folder of its own.

They listen on a unix socket only, so ports never clash; they run as an unprivileged
user, since both refuse root; and they do not wait for the disk, since their data
lives no longer than the tests. Each is a context manager that yields its URL, or the
server itself for those who want to stop and start it.

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


class Server:
    """A server that can be stopped, and started again at the same address."""

    def __init__(
        self,
        url: str,
        command: Command,
        folder: Path,
        *,
        stop: signal.Signals,
        crash: signal.Signals,
        is_up: Callable[[], bool],
    ) -> None:
        self.url = url
        self._command = [*_guard(stop), *command]
        self._folder = folder
        self._stop = stop
        self._crash = crash
        self._is_up = is_up
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with _log(self._folder) as log:
            # Its own session: Ctrl-C is for pytest, which still needs the server then.
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + SECONDS_TO_START
        while not self._is_up():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ServiceError(
                    f"A server does not start: {_last_words(self._folder)}"
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """Disconnect everybody and end in order."""
        self._end(self._stop)

    def crash(self) -> None:
        """End at once, as if it had been killed."""
        self._end(self._crash)

    def freeze(self) -> None:
        """Stay there and accept connections, but answer nobody."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on where it was."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        # First the one that would make more of them.
        pid = self._process.pid
        os.kill(pid, number)
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in map(int, children):
            os.kill(child, number)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


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
def postgresql_server(*options: str) -> Iterator[Server]:
    """Run a PostgreSQL server for the block, which may stop and start it."""
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
            *options,
        ]
        ready: Command = [programs / "pg_isready", "-q", "-h", folder, "-p", "5432"]
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
        with _running(server):
            yield server


@contextmanager
def mariadb_server(*options: str) -> Iterator[Server]:
    """Run a MariaDB server for the block, which may stop and start it."""
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
        server = Server(
            f"mariadb://root@/?socket={door}",
            [program, *data, *files, *MARIADB_OPTIONS, *options],
            folder,
            stop=signal.SIGTERM,
            crash=signal.SIGKILL,
            is_up=lambda: _greets(door),
        )
        with _running(server):
            yield server


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
def _running(server: Server) -> Iterator[None]:
    owner = os.getpid()
    try:
        server.start()
        yield
    finally:
        if os.getpid() == owner:
            server.stop()


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
