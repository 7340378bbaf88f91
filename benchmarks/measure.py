"""How each workload is measured."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import marks
from benchmarks.databases import Databases
from benchmarks.figures import percentiles, rate
from benchmarks.plan import Case
from benchmarks.processes import ROOT, StepError, Workers, step, workers
from benchmarks.systems import load
from benchmarks.systems.base import WARM_UP

# Where writing costs nothing.
MEMORY = "/dev/shm"  # noqa: S108

SECONDS_TO_BEGIN = 45.0
SECONDS_OF_DRAIN = 5.0
SECONDS_OF_DEPTH = 4.0
SECONDS_OF_STEP = 240.0
SECONDS_TO_SETTLE = 4.0
# A backend of PostgreSQL that has nothing to do reports after ten seconds.
SECONDS_TO_REPORT = 11.0
SECONDS_IDLE = 15.0
SECONDS_OF_MIX = 8
BEHIND = 40_000
BATCH = 1_000

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

    def result(self) -> Result:
        """Measure."""
        return WORKLOADS[self.case.workload](self)

    def create(self, **content: int) -> None:
        """Create the database, with the tables and so many `fill` or `finish` jobs."""

        def prepare(url: str) -> None:
            self.url = url
            self.step("prepare")
            for command, count in content.items():
                if count:
                    self.step(command, count)

        case = self.case
        name = f"{case.system} {case.configuration} {content}"
        self.url = self.databases.fresh(name, prepare)
        self.marks.unlink(missing_ok=True)

    def step(self, command: str, *arguments: int) -> Any:
        """Run one command of the system."""
        module = [sys.executable, "-m", "benchmarks.systems", self.case.system]
        line = [*module, command, *map(str, arguments)]
        return json.loads(step(line, self.environment(), limit=SECONDS_OF_STEP))

    @contextmanager
    def working(self) -> Iterator[Workers]:
        """Run the worker for the block."""
        os.environ.update(self.addresses())
        commands = self.system.worker()
        with workers(commands, self.environment(), self.log) as group:
            yield group

    def environment(self) -> dict[str, str]:
        """Return the environment of the system's processes."""
        folder = Path(sys.executable).parent
        return {
            **os.environ,
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "benchmarks.project.settings",
            **self.addresses(),
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
        return {
            "statements": counts.statements / jobs,
            "commits": counts.commits / jobs,
        }


def measure(case: Case, databases: Databases) -> Result:
    """Measure one case once, with its files in memory."""
    with tempfile.TemporaryDirectory(prefix="rq-bench-", dir=MEMORY) as folder:
        return Measurement(case, databases, Path(folder)).result()


def drain(run: Measurement) -> Result:
    """Fill the queue, start the worker, count."""
    configuration = run.system.configurations[run.case.configuration]
    jobs = run.case.size or configuration.jobs
    run.create(fill=jobs)
    return _drained(run, jobs, SECONDS_OF_DRAIN)


def depth(run: Measurement) -> Result:
    """Drain a part of a queue that is deeper by the size of the case."""
    run.create(fill=run.case.size + BEHIND)
    return _drained(run, BEHIND, SECONDS_OF_DEPTH)


def finished(run: Measurement) -> Result:
    """Drain while so many finished jobs are kept."""
    run.create(finish=run.case.size, fill=BEHIND)
    return _drained(run, BEHIND, SECONDS_OF_DEPTH)


def _drained(run: Measurement, jobs: int, seconds: float) -> Result:
    run.databases.start_counting()
    with run.working() as group:
        run.wait_for_marks(group, 1, SECONDS_TO_BEGIN, strict=True)
        cpu, before = group.cpu(), marks.count(run.marks)
        run.wait_for_marks(group, jobs, seconds)
        cpu, after = group.cpu() - cpu, marks.count(run.marks)
        memory, processes = group.memory(), group.count()
    noted = marks.read(run.marks)
    return {
        "value": rate([each.time for each in noted[:jobs]]),
        "jobs": after,
        "cpu_ms": 1000 * cpu / (after - before) if after > before else None,
        "memory": memory,
        "processes": processes,
        **run.counted(len(noted)),
    }


def enqueue(run: Measurement) -> Result:
    """Enqueue one by one."""
    run.create()
    run.databases.start_counting()
    return _enqueued(run, run.step("enqueue", run.case.size), WARM_UP)


def bulk(run: Measurement) -> Result:
    """Enqueue many at once."""
    run.create()
    run.databases.start_counting()
    return _enqueued(run, run.step("bulk", run.case.size, BATCH), BATCH)


def _enqueued(run: Measurement, times: dict[str, float], warm_up: int) -> Result:
    count = run.case.size
    return {
        "value": count / times["seconds"],
        "cpu_ms": 1000 * times["cpu"] / count,
        **run.counted(count + warm_up),
    }


def latency(run: Measurement) -> Result:
    """Enqueue now and then beside an idle worker."""
    run.create()
    with run.working() as group:
        times = run.step("latency", run.case.size)
        run.wait_for_marks(group, run.case.size, 3)
        noted = {each.number: each.time for each in marks.read(run.marks)}
    waits = [noted[n] - time for n, time in enumerate(times["returns"]) if n in noted]
    calls = [noted[n] - time for n, time in enumerate(times["calls"]) if n in noted]
    p50, p95, p99 = (1000 * each for each in percentiles(waits))
    return {
        "value": p50,
        "p95": p95,
        "p99": p99,
        "from_call": 1000 * percentiles(calls)[0],
        "lost": run.case.size - len(waits),
    }


def idle(run: Measurement) -> Result:
    """Watch a default installation that has nothing to do."""
    run.create()
    with run.working() as group:
        run.step("latency", 0)
        time.sleep(SECONDS_TO_REPORT)
        run.databases.start_counting()
        cpu, began = group.cpu(), time.monotonic()
        time.sleep(SECONDS_IDLE)
        counts = run.databases.counts()
        cpu, seconds = group.cpu() - cpu, time.monotonic() - began
        result = {
            "value": 60 * cpu / seconds,
            "memory": group.memory(),
            "processes": group.count(),
        }
    if counts is not None:
        result["statements"] = counts.statements / seconds
        result["commits"] = counts.commits / seconds
    return result


def memory(run: Measurement) -> Result:
    """Weigh the processes before and after so many jobs."""
    run.create()
    with run.working() as group:
        run.step("latency", 0)
        time.sleep(SECONDS_TO_SETTLE)
        before, ran = group.memory(), marks.count(run.marks)
        run.step("burst", run.case.size)
        run.wait_for_marks(group, ran + run.case.size, 120)
        time.sleep(SECONDS_TO_SETTLE)
        return {
            "value": before,
            "after": group.memory(),
            "jobs": marks.count(run.marks) - ran,
            "processes": group.count(),
        }


def naps(run: Measurement) -> Result:
    """Work off tasks that sleep for ten milliseconds."""
    run.create()
    run.step("naps", run.case.size, 10)
    return _drained(run, run.case.size, SECONDS_OF_DRAIN)


def share(run: Measurement) -> Result:
    """Enqueue six tasks of a second for two times three threads, after a burst.

    The burst has taught the workers to take many tasks at once, which would keep a
    neighbour from its share now.
    """
    run.create()
    burst, long = 2_000, 6
    with run.working() as group:
        run.step("latency", 0)
        ran = marks.count(run.marks)
        run.step("burst", burst)
        run.wait_for_marks(group, ran + burst, 30, strict=True)
        time.sleep(SECONDS_TO_SETTLE)
        ran = marks.count(run.marks)
        called, _ = run.step("naps", long, 1000)
        run.wait_for_marks(group, ran + long, 10, strict=True)
        starts = [each.time for each in marks.read(run.marks)[ran:]]
    return {"value": max(starts) - min(starts), "last": max(starts) - called}


def mix(run: Measurement) -> Result:
    """Let short tasks trickle in beside long ones."""
    run.create()
    with run.working() as group:
        run.step("latency", 0)
        returns = run.step("mix", SECONDS_OF_MIX)
        time.sleep(2)
        group.check()
        noted = {each.number: each.time for each in marks.read(run.marks)}
    waits = [noted[int(n)] - time for n, time in returns.items() if int(n) in noted]
    p50, p95, p99 = (1000 * each for each in percentiles(waits))
    lost = len(returns) - len(waits)
    return {"value": p95, "p50": p50, "p99": p99, "lost": lost}


WORKLOADS: dict[str, Callable[[Measurement], Result]] = {
    function.__name__: function
    for function in (
        *(drain, enqueue, bulk, latency, depth, finished),
        *(idle, memory, naps, share, mix),
    )
}
