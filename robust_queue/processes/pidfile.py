"""One supervisor per pidfile: a lock on the file, so that a stale one never blocks."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from robust_queue.exceptions import RobustQueueError


class AlreadyRunningError(RobustQueueError):
    """Another supervisor holds the pidfile."""


class Pidfile:
    """A file that holds the number of its supervisor, locked for as long as it runs.

    The kernel drops the lock with the process, however that ended. Its children must
    not keep it alive: they call ``let_go`` when they are born.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._descriptor: int | None = None

    def take(self) -> None:
        """Lock the file and write this process into it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        while self._descriptor is None:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            self._lock(descriptor)
            # Whoever held it may have removed it since it was opened here.
            if not self._is_the_file(descriptor):
                os.close(descriptor)
                continue
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            self._descriptor = descriptor

    def remove(self) -> None:
        """Remove the file, if it is still this one, and with it the lock."""
        with suppress(OSError):
            if self._descriptor is not None and self._is_the_file(self._descriptor):
                self._path.unlink()
        self.let_go()

    def let_go(self) -> None:
        """Close the file. The lock stays with the process that took it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            raise AlreadyRunningError(
                f"Another supervisor is running, process {holder or 'unknown'}: it "
                f"holds {self._path}. Stop it, or give this one a --pidfile of its own."
            ) from None

    def _is_the_file(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False
