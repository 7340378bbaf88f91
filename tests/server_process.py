"""A server that belongs to the tests: its process, its folder, its log.

It runs as an unprivileged user, since database servers refuse root, and ends with the
process that started it.

A forked child inherits these context managers, and may leave them when it ends, but
only the process that entered one stops the server or removes the folder.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

SECONDS_TO_START = 60
SECONDS_TO_STOP = 20
LOG = "log"
# The path of a socket may not exceed 107 bytes, and the account that runs the server
# has to reach it: TMPDIR may be long, or closed to that account.
PLACE = "/tmp"  # noqa: S108

Command = list[str | Path]


class ServiceError(RuntimeError):
    """A server is missing, misnamed or does not start."""


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
        self.folder = folder
        self._stop = stop
        self._crash = crash
        self._is_up = is_up
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """The file to which it writes what it has to say."""
        return self.folder / LOG

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with _log(self.folder) as log:
            # Its own session: Ctrl-C is for pytest, which still needs the server then.
            self._process = subprocess.Popen(
                self._command,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + SECONDS_TO_START
        while not self._is_up():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ServiceError(
                    f"A server does not start: {_last_words(self.folder)}"
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


def prepare(command: Command, folder: Path) -> None:
    """Run to its end what a server needs before its first start."""
    with _log(folder) as log:
        command = [*_guard(signal.SIGTERM), *command]
        done = subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=False)
    if done.returncode:
        raise ServiceError(f"No server could be prepared: {_last_words(folder)}")


@contextmanager
def running(server: Server) -> Iterator[None]:
    """Run a server for the block."""
    owner = os.getpid()
    try:
        server.start()
        yield
    finally:
        if os.getpid() == owner:
            server.stop()


@contextmanager
def private_folder(place: str = PLACE) -> Iterator[Path]:
    """Make a folder that the servers' account owns; remove it after the block."""
    owner = os.getpid()
    # The name tells whose it is, should a SIGKILL leave it behind.
    folder = Path(tempfile.mkdtemp(prefix=f"rq-{owner}-", dir=place))
    try:
        if os.geteuid() == 0:
            os.chown(folder, *_unprivileged())
        yield folder
    finally:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


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


def _log(folder: Path) -> IO[bytes]:
    return (folder / LOG).open("ab")


def _last_words(folder: Path) -> str:
    lines = (folder / LOG).read_text(errors="replace").splitlines()
    return " / ".join(line.strip() for line in lines[-6:] if line.strip())
