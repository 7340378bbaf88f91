"""One case on one fresh database: what every workload needs."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import marks
from benchmarks.databases import Counts, Databases
from benchmarks.plan import Case
from benchmarks.processes import ROOT, StepError, Workers, step, workers
from benchmarks.systems import load

SECONDS_OF_STEP = 240.0

Result = dict[str, Any]


class Measurement:
    """One case on one fresh database."""

    def __init__(self, case: Case, databases: Databases, folder: Path) -> None:
        self.case = case
        self.databases = databases
        self.system = load(case.system)(case.configuration)
        self.marks = folder / "marks"
        self.log = folder / "log"
        self.url = ""

    def create(self, *, kept: bool = False, **content: int) -> None:
        """Create the database, with the tables and so many `fill` or `finish` jobs.

        One that is only read may be kept for the next repeat.
        """

        def prepare(url: str) -> None:
            self.url = url
            self.step("prepare")
            for command, count in content.items():
                if count:
                    self.step(command, count)

        case = self.case
        name = f"{case.system} {case.configuration} {content}"
        make = self.databases.kept if kept else self.databases.fresh
        self.url = make(name, prepare)
        self.marks.unlink(missing_ok=True)

    def step(self, command: str, *arguments: int) -> Any:
        """Run one command of the system."""
        module = [sys.executable, "-m", "benchmarks.systems", self.case.system]
        line = [*module, command, *map(str, arguments)]
        return json.loads(step(line, self.environment(), limit=SECONDS_OF_STEP))

    @contextmanager
    def working(self) -> Iterator[Workers]:
        """Run the worker for the block."""
        environment = self.environment()
        with workers(self.system.worker(), environment, self.log) as group:
            yield group

    def environment(self) -> dict[str, str]:
        """Return the environment of the system's processes."""
        # The system is asked here as well, and looks there for its database.
        os.environ.update(self.addresses())
        folder = Path(sys.executable).parent
        return {
            **os.environ,
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "benchmarks.project.settings",
            **self.system.environment(),
        }

    def addresses(self) -> dict[str, str]:
        """Return what base.py explains."""
        return {
            "BENCH_SYSTEM": self.case.system,
            "BENCH_CONFIGURATION": self.case.configuration,
            "BENCH_DATABASE_KIND": self.case.database,
            "BENCH_DATABASE_URL": self.url,
            "BENCH_MARKS": str(self.marks),
        }

    def wait_for_marks(
        self, group: Workers, count: int, seconds: float, *, strict: bool = False
    ) -> None:
        """Wait until so many tasks have run, or for so long."""
        deadline = time.monotonic() + seconds
        while marks.count(self.marks) < count:
            group.check()
            if time.monotonic() > deadline:
                if strict:
                    raise StepError(f"no task ran in {seconds:.0f} s: {group.words()}")
                return
            time.sleep(0.01)

    def counted(self, jobs: int) -> Result:
        """Return what the server counted for each job."""
        counts = self.databases.counts()
        if counts is None or not jobs:
            return {}
        return per(jobs, counts)


def per(divisor: float, counts: Counts | None) -> Result:
    """Return what was counted, for each job or for each second."""
    if counts is None:
        return {}
    commits = None if counts.commits is None else counts.commits / divisor
    return {"statements": counts.statements / divisor, "commits": commits}
