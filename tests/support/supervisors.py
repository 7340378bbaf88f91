"""Real supervisors for tests: started as an operator would, watched through facts."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from robust_queue.models import Process
from tests.testapp.models import Mark

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 30

QUICK = {
    "process_heartbeat_interval": 0.5,
    "process_alive_threshold": 3,
    "shutdown_timeout": 5,
    "workers": [{"threads": 3, "polling_interval": 0.05}],
    "dispatchers": [{"polling_interval": 0.05}],
}


class Supervised:
    """A supervisor and its children, in a session of their own."""

    def __init__(self, folder, *arguments, settings=None, environment=(), **options):
        self.folder = Path(folder)
        self.log_path = self.folder / f"supervisor-{time.monotonic_ns()}.log"
        self.pidfile = self.folder / f"{self.log_path.stem}.pid"
        supervised = {"robust_queue": {**QUICK, **options}, **(settings or {})}
        self._environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.process_settings",
            "RQ_SUPERVISED": json.dumps(supervised),
            "PYTHONPATH": str(ROOT),
            **dict(environment),
        }
        self._arguments = arguments
        self.process = None

    def start(self):
        with self.log_path.open("a") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self

    @property
    def command(self):
        """What is started."""
        return [
            *(sys.executable, "-m", "django", "robust_queue"),
            *("--pidfile", str(self.pidfile), *self._arguments),
        ]

    @property
    def pid(self):
        return self.process.pid

    @property
    def log(self):
        return self.log_path.read_text()

    def send(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=PATIENCE):
        """Its exit code, once it has ended."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"It did not end:\n{self.log}") from None

    def stop(self, number=signal.SIGTERM, timeout=PATIENCE):
        self.send(number)
        return self.wait(timeout)

    def rows(self, kind=None):
        """The children that are registered, by the supervisor's number in their row."""
        supervisors = Process.objects.filter(kind="Supervisor", pid=self.pid)
        rows = Process.objects.filter(supervisor_id__in=supervisors.values("pk"))
        return list(rows.filter(kind=kind) if kind else rows)

    def pids(self, kind="Worker"):
        return [row.pid for row in self.rows(kind)]

    def until_up(self, workers=1):
        """Wait until its workers are registered."""

        def are_up():
            assert self.process.poll() is None, "It has ended."
            return len(self.rows("Worker")) >= workers

        self.until(are_up, "its workers are up")
        return self

    def until(self, fact, what="", timeout=PATIENCE):
        """Wait for a fact; tell the log if it does not come."""
        try:
            return until(fact, what, timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- log ---\n{self.log}") from None

    def clean_up(self):
        """End whatever is left of the session, by its id."""
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)


def until(fact, what="", timeout=PATIENCE):
    """Wait for a fact and return it."""
    end, pause = time.monotonic() + timeout, 0.01
    while time.monotonic() < end:
        found = fact()
        if found:
            return found
        # What takes long is looked at less often: others want to compute meanwhile.
        time.sleep(pause)
        pause = min(1.2 * pause, 0.1)
    raise AssertionError(f"This did not come true in {timeout} s: {what or fact}")


def is_alive(pid):
    """Does this process run? A zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def marks(prefix=""):
    """What tasks have told, in order."""
    found = Mark.objects.filter(label__startswith=prefix).order_by("pk")
    return list(found.values_list("label", flat=True))
