"""How each workload is measured."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import marks
from benchmarks.dashboard import comparison
from benchmarks.databases import Databases
from benchmarks.figures import percentiles, rate
from benchmarks.measurement import Measurement, Result, per
from benchmarks.plan import Case
from benchmarks.systems.base import WARM_UP

# Where writing costs nothing.
MEMORY = "/dev/shm"  # noqa: S108

SECONDS_TO_BEGIN = 45.0
SECONDS_TO_SETTLE = 4.0
# A backend of PostgreSQL that has nothing to do reports after ten seconds.
SECONDS_TO_REPORT = 11.0
SECONDS_IDLE = 15.0
SECONDS_OF_MIX = 8
BEHIND = 60_000
BATCH = 1_000


def measure(case: Case, databases: Databases) -> Result:
    """Measure one case once, with its files in memory."""
    with tempfile.TemporaryDirectory(prefix="rq-bench-", dir=MEMORY) as folder:
        return WORKLOADS[case.workload](Measurement(case, databases, Path(folder)))


def drain(run: Measurement) -> Result:
    """Fill the queue, start the worker, count."""
    configuration = run.system.configurations[run.case.configuration]
    jobs = run.case.size or configuration.jobs
    run.create(**{run.case.filling: jobs})
    return _drained(run, jobs)


def depth(run: Measurement) -> Result:
    """Drain a part of a queue that is deeper by the size of the case."""
    run.create(fill=run.case.size + BEHIND)
    return _drained(run, BEHIND)


def finished(run: Measurement) -> Result:
    """Drain while so many finished jobs are kept."""
    run.create(finish=run.case.size, fill=BEHIND)
    return _drained(run, BEHIND)


def _drained(run: Measurement, jobs: int) -> Result:
    run.databases.start_counting()
    with run.working() as group:
        run.wait_for_marks(group, 1, SECONDS_TO_BEGIN, strict=True)
        cpu, before = group.cpu(), marks.count(run.marks)
        run.wait_for_marks(group, jobs, run.case.seconds)
        cpu, after = group.cpu() - cpu, marks.count(run.marks)
        noted = marks.read(run.marks)[:jobs]
        memory, processes = group.memory(), group.count()
    return {
        "value": rate([each.time for each in noted]),
        "jobs": after,
        "twice": _twice([each.number for each in noted]),
        "cpu_ms": 1000 * cpu / (after - before) if after > before else None,
        "memory": memory,
        "processes": processes,
        # The server counted to the end, so those are counted who ran to the end.
        **run.counted(marks.count(run.marks)),
    }


def _twice(numbers: list[int]) -> int | None:
    """Return how many jobs ran again, where each has a number of its own."""
    distinct = len(set(numbers))
    return len(numbers) - distinct if distinct > 1 else None


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
    return {**result, **per(seconds, counts)}


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
    return _drained(run, run.case.size)


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


def dashboard(run: Measurement) -> Result:
    """Ask for every page of the admin."""
    run.create(kept=True, stock=run.case.size)
    pages = run.step("browse")
    slowest = max(page.get("ms", 0.0) for page in pages.values())
    return {"value": slowest, **comparison.flat(pages)}


WORKLOADS: dict[str, Callable[[Measurement], Result]] = {
    function.__name__: function
    for function in (
        *(drain, enqueue, bulk, latency, depth, finished),
        *(idle, memory, naps, share, mix, dashboard),
    )
}
# Drains as well: what differs is how the queue is filled, or who works it off.
WORKLOADS |= {"hot": drain, "keys": drain, "api": drain}
