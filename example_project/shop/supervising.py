"""Supervisors for the demonstration, started as an operator would start them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from robust_queue.models import Process

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
SECONDS_TO_STOP = 30


class Supervisor:
    """``manage.py robust_queue`` in a process of its own."""

    def __init__(self, *arguments: str, log: Path) -> None:
        with log.open("w") as output:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, MANAGE, "robust_queue", "--pidfile", "", *arguments],
                stdout=output,
                stderr=output,
            )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

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

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)

    def stop(self) -> None:
        if self.is_running:
            self._process.terminate()
        self._process.wait(SECONDS_TO_STOP)


@contextmanager
def running(*arguments: str, log: Path) -> Iterator[Supervisor]:
    """Run a supervisor for the block."""
    supervisor = Supervisor(*arguments, log=log)
    try:
        yield supervisor
    finally:
        supervisor.stop()
