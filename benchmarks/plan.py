"""What is measured: every case of every workload."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from benchmarks.systems.base import DASHBOARD, MARIADB, POSTGRESQL, REDIS, SQLITE

OURS = "robust-queue"
BEST = ("best", "best async")

DJANGO_PEERS = ("dj-queue", "django-ox", "steady-queue", "django-tasks-db")
POSTGRESQL_PEERS = ("pgqueuer", "oban", "procrastinate", *DJANGO_PEERS)
REDIS_PEERS = ("celery", "dramatiq", "huey", "rq")
CLOSEST = ("pgqueuer", "oban")
BULK_PEERS = ("raw", "pgqueuer", "procrastinate", "oban", "dj-queue", "django-ox")
LATENCY_PEERS = ("oban", "procrastinate", "pgqueuer", "dj-queue")
DEEP = ("pgqueuer", "oban", "procrastinate", "steady-queue")

THOUSAND = 1_000
MILLION = 1_000_000
KEYS = 10_000
KEYED = f"{KEYS:,} keys"
UNLIMITED = "no limit"
ONE_BY_ONE = "gunicorn, one by one"


@dataclass(frozen=True)
class Case:
    """One figure: a workload for one system, set up in one way on one database."""

    workload: str
    system: str
    configuration: str = "default"
    database: str = POSTGRESQL
    variant: str = ""
    """What differs between the cases of one workload, such as the depth."""
    size: int = 0
    """How many jobs; for a drain, zero for as many as the configuration says."""
    repeats: int = 0
    """How often, if not as often as the others."""
    seconds: float = 4.0
    """How long a drain is watched at most."""
    filling: str = "fill"
    """The command of the system that fills the queue of a drain."""

    @property
    def title(self) -> str:
        """The case in words."""
        words = [self.system, self.configuration, self.variant, f"({self.database})"]
        return f"{self.workload}: {' '.join(word for word in words if word)}"


WORKLOADS = {
    "drain": "Drain: jobs/s of a worker that works off a filled queue",
    "hot": "Hot key: jobs/s of a drain whose jobs share a key, one at a time",
    "keys": "Keys: jobs/s of a drain with so many keys, one at a time for each",
    "enqueue": "Enqueue: calls/s of one process, one after the other",
    "bulk": "Bulk enqueue: jobs/s of one process, a thousand in a call",
    "latency": "Latency from idle: ms from the return of the enqueue to the task",
    "depth": "Depth: jobs/s of a drain with so many ready jobs behind",
    "finished": "Kept jobs: jobs/s of a drain with so many finished jobs kept",
    "idle": "Idle: what an installation does while nothing is to do",
    "memory": "Memory: MiB of all processes (sum of PSS), before and after jobs",
    "naps": "Naps: jobs/s of tasks that sleep 10 ms, in 20 threads",
    "share": "Share: seconds between the first and the last start of six long tasks",
    "api": "API: jobs/s of four workers outside, through one process of a web server",
    "dashboard": "Dashboard: ms of the slowest page of the admin, with so many jobs",
    "mix": "Mix: ms that short tasks wait beside long ones while a thread is free",
}


def full() -> Iterator[Case]:
    """Every case, workload by workload."""
    yield from _drains((*POSTGRESQL_PEERS, "huey"), redis=REDIS_PEERS)
    yield from _other_databases()
    yield from _hot(("default", "best"))
    yield from _keys()
    peers = ("raw", *POSTGRESQL_PEERS, "huey")
    yield from _enqueues(peers, redis=REDIS_PEERS, size=3_000)
    yield from _bulks(BULK_PEERS, 50_000)
    yield from _latencies(LATENCY_PEERS, ("huey", "celery"), 200)
    yield from _depths((OURS, *DEEP))
    yield from _finished()
    yield from _idles(POSTGRESQL_PEERS, redis=("huey", "celery"))
    yield Case("memory", OURS, "scheduler", size=100_000, repeats=1)
    yield Case("memory", "steady-queue", size=1_000, repeats=1)
    yield from _ours()
    yield from _outside(("gunicorn", "uvicorn", ONE_BY_ONE))
    yield from _dashboards(MILLION)


def quick() -> Iterator[Case]:
    """A few cases, enough to see where we stand within five minutes."""
    for case in _quick():
        yield replace(case, seconds=3.0)


def _quick() -> Iterator[Case]:
    yield from _drains(CLOSEST, redis=())
    yield Case("drain", OURS, "best", MARIADB)
    yield Case("drain", OURS, "default", SQLITE)
    yield from _hot(("default",))
    yield from _keys()
    yield from _enqueues(("raw", *CLOSEST), redis=(), size=1_500)
    yield from _bulks(("raw", "pgqueuer"), 20_000)
    yield from _latencies(("oban", "procrastinate"), (), 100)
    yield from _outside(("gunicorn",))


def _outside(configurations: Iterable[str]) -> Iterator[Case]:
    for configuration in configurations:
        yield Case("api", OURS, configuration)


def _dashboards(most: int) -> Iterator[Case]:
    for jobs in (THOUSAND, most):
        for system in (OURS, "dj-queue"):
            case = Case("dashboard", system, DASHBOARD, size=jobs, filling="stock")
            # Where their pages take seconds, two repeats tell as much as five.
            few = 2 if system != OURS and jobs > THOUSAND else 0
            yield replace(case, variant=f"{jobs:,}", repeats=few)


def needed_databases(cases: Iterable[Case]) -> list[str]:
    """Return the kinds of servers these cases need."""
    return list(dict.fromkeys(case.database for case in cases))


def _drains(peers: Iterable[str], redis: Iterable[str]) -> Iterator[Case]:
    yield Case("drain", OURS)
    for configuration in BEST:
        yield Case("drain", OURS, configuration)
    yield Case("drain", "raw", "best")
    for system in peers:
        yield from _both(system, POSTGRESQL)
    for system in redis:
        yield from _both(system, REDIS)


def _both(system: str, database: str) -> Iterator[Case]:
    yield Case("drain", system, "default", database)
    yield Case("drain", system, "best", database)


def _other_databases() -> Iterator[Case]:
    for system in (OURS, "dj-queue"):
        yield Case("drain", system, "best", MARIADB)
    for system in (OURS, "steady-queue", "django-tasks-db", "huey"):
        yield from _both(system, SQLITE)


def _hot(configurations: Iterable[str]) -> Iterator[Case]:
    # More than each of them can do while it is watched, so that the key stays hot.
    for system, size in ((OURS, 20_000), ("dj-queue", 2_000)):
        for configuration in configurations:
            yield Case("hot", system, configuration, size=size, filling="fill_hot")


def _keys() -> Iterator[Case]:
    # Four jobs for each key. Those without are enqueued by the same calls.
    for variant, filling in ((KEYED, "fill_keyed"), (UNLIMITED, "burst")):
        yield Case("keys", OURS, variant=variant, size=40_000, filling=filling)


def _enqueues(peers: Iterable[str], redis: Iterable[str], size: int) -> Iterator[Case]:
    for system in (OURS, *peers):
        yield Case("enqueue", system, size=size)
    for system in redis:
        yield Case("enqueue", system, database=REDIS, size=size)


def _bulks(peers: Iterable[str], size: int) -> Iterator[Case]:
    for system in (OURS, *peers):
        yield Case("bulk", system, size=size)


def _latencies(peers: Iterable[str], redis: Iterable[str], size: int) -> Iterator[Case]:
    for system in (OURS, *peers):
        yield Case("latency", system, size=size, repeats=3)
    for system in redis:
        yield Case("latency", system, database=REDIS, size=size, repeats=3)


def _depths(systems: Iterable[str]) -> Iterator[Case]:
    for depth in (1_000, 100_000, MILLION):
        for system in systems:
            case = Case("depth", system, "best", variant=f"{depth:,}", size=depth)
            yield case if system == OURS else replace(case, repeats=2)


def _finished() -> Iterator[Case]:
    for kept in (0, MILLION):
        yield Case("finished", OURS, "best", variant=f"{kept:,}", size=kept)


def _idles(peers: Iterable[str], redis: Iterable[str]) -> Iterator[Case]:
    for system in (OURS, *peers):
        yield Case("idle", system, repeats=1)
    for system in redis:
        yield Case("idle", system, database=REDIS, repeats=1)


def _ours() -> Iterator[Case]:
    yield Case("naps", OURS, "20 threads", size=10_000, repeats=3)
    yield Case("share", OURS, "pair", repeats=3)
    yield Case("mix", OURS, "5 threads", repeats=3)
