"""Processes of the demonstration, started as an operator would start them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from robust_queue.models import Process
from robust_queue.processes.isolation.kernel import hear_of_parent

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
SECONDS_TO_STOP = 30


class Managed:
    """A command of ``manage.py`` in a process of its own.

    In a group of its own as well: Ctrl-C is for the demonstration, which then stops
    everybody in turn.
    """

    def __init__(self, *command: str, log: Path) -> None:
        self.log = log
        parent = os.getpid()
        with log.open("w") as output:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, MANAGE, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
                preexec_fn=lambda: _outlive_nobody(parent),  # noqa: PLW1509
            )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)

    def stop(self) -> None:
        if self.is_running:
            self._process.terminate()
        self._process.wait(SECONDS_TO_STOP)


class Supervisor(Managed):
    """``manage.py robust_queue``, and what it has started."""

    def __init__(self, *arguments: str, log: Path) -> None:
        super().__init__("robust_queue", "--pidfile", "", *arguments, log=log)

    def workers(self) -> list[Process]:
        """Its workers, as they have registered themselves."""
        return self._children("Worker")

    def _children(self, kind: str) -> list[Process]:
        own = Process.objects.filter(kind="Supervisor", pid=self._process.pid)
        children = Process.objects.filter(supervisor_id__in=own.values("pk"))
        return list(children.filter(kind=kind))

    def kill_one(self, kind: str) -> bool:
        """End a child of that kind as a crash would; False if none is up."""
        for child in self._children(kind):
            try:
                os.kill(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            return True
        return False


@contextmanager
def running(*arguments: str, log: Path) -> Iterator[Supervisor]:
    """Run a supervisor for the block."""
    supervisor = Supervisor(*arguments, log=log)
    try:
        yield supervisor
    finally:
        supervisor.stop()


def _outlive_nobody(parent: int) -> None:
    """Be told to stop when the demonstration is killed (Linux)."""
    hear_of_parent(signal.SIGTERM)
    # It may have died before that was asked for, and nobody would tell any more.
    if os.getppid() != parent:
        os._exit(1)
