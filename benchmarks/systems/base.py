"""What a system has to offer in order to be measured.

A module of this package defines one subclass of `System` and calls it `SYSTEM`. It may
import nothing but the standard library at its top: `run.py` loads it for the figures
that describe it. The packages of the system are imported in the methods, which run in a
process of their own, `python -m benchmarks.systems SYSTEM COMMAND`, and read there:

- `BENCH_SYSTEM` and `BENCH_CONFIGURATION`: what is measured, and how it is set up,
- `BENCH_DATABASE_KIND`: postgresql, mariadb, sqlite or redis,
- `BENCH_DATABASE_URL`: such as `postgresql://postgres@127.0.0.1:5433/name`,
  `mariadb://root@127.0.0.1:3307/name`, `sqlite:////folder/file`,
  `redis://127.0.0.1:6380/0`,
- `BENCH_MARKS`: the file of the marks, see `benchmarks/marks.py`.
"""

import os
import random
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from benchmarks import marks

POSTGRESQL = "postgresql"
MARIADB = "mariadb"
SQLITE = "sqlite"
REDIS = "redis"

# The configuration of a project that has the admin.
DASHBOARD = "dashboard"

WARM_UP = 50
BURST = 1_000
SPACING = (0.040, 0.060)
FIRST_JOBS = 5
PAUSE = 0.5
SECONDS_TO_BEGIN = 45.0

# One command line for each process of a worker.
Commands = list[list[str]]


@dataclass(frozen=True)
class Configuration:
    """One way of setting a system up."""

    note: str
    """What a reader should know, such as `2 processes × 8 threads`."""
    jobs: int = 20_000
    """How many jobs are enough for a drain of some seconds."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the module itself reads again."""
    asynchronous: bool = False
    """Whether the task is an `async def`."""
    databases: Sequence[str] = ()
    """The databases it is meant for, if not for all."""


class System(ABC):
    """A queue, set up in one of its configurations."""

    name: ClassVar[str]
    """As on PyPI."""
    databases: ClassVar[Sequence[str]]
    """Where it can keep its jobs."""
    configurations: ClassVar[Mapping[str, Configuration]]
    """At least `default`, out of the box; `best`, as documented for throughput."""
    has_bulk: ClassVar[bool] = True
    """Whether its API can enqueue many jobs at once."""
    fills_deep: ClassVar[bool] = False
    """Whether `fill()` can write a million jobs in about a minute."""

    def __init__(self, configuration: str | None = None) -> None:
        self.configuration = configuration or os.environ["BENCH_CONFIGURATION"]

    @property
    def options(self) -> Mapping[str, Any]:
        """What this configuration tells the module."""
        return self.configurations[self.configuration].options

    @property
    def asynchronous(self) -> bool:
        """Whether the `async def` task is to be enqueued."""
        return self.configurations[self.configuration].asynchronous

    @property
    def kind(self) -> str:
        """The kind of the database."""
        return os.environ["BENCH_DATABASE_KIND"]

    @property
    def url(self) -> str:
        """The address of the database."""
        return os.environ["BENCH_DATABASE_URL"]

    # What a subclass says.

    def environment(self) -> dict[str, str]:
        """Return what this configuration adds to the environment of its processes."""
        return {}

    def django_settings(self) -> dict[str, Any]:
        """Return what `benchmarks/project/settings.py` takes over."""
        return {}

    @abstractmethod
    def worker(self) -> Commands:
        """Return the commands that work off the queue, each ended by SIGTERM."""

    def __enter__(self) -> Self:
        """Get ready for the calls below: connect, set Django up."""
        return self

    def __exit__(self, *error: object) -> None:
        """Undo it."""

    @abstractmethod
    def prepare(self) -> None:
        """Create the tables in an empty database."""

    @abstractmethod
    def enqueue_one(self, number: int) -> None:
        """Enqueue one job with this number, as an application would."""

    def enqueue(self, count: int) -> None:
        """Enqueue so many jobs one after the other."""
        for number in range(count):
            self.enqueue_one(number)

    def enqueue_bulk(self, count: int, batch: int) -> None:
        """Enqueue so many jobs by the API for many, so many in a call."""
        raise NotImplementedError

    @abstractmethod
    def fill(self, count: int) -> None:
        """Write so many jobs in the fastest way that the worker takes for granted."""

    def finish(self, count: int) -> None:
        """Write so many jobs that have run already and are kept."""
        raise NotImplementedError

    # What `python -m benchmarks.systems` calls.

    def command_prepare(self) -> None:
        """Create the tables."""
        self.prepare()

    def command_fill(self, count: int) -> None:
        """Fill the queue."""
        self.fill(count)

    def command_burst(self, count: int) -> None:
        """Enqueue so many beside a worker that runs, as an application would."""
        if self.has_bulk:
            self.enqueue_bulk(count, BURST)
        else:
            self.enqueue(count)

    def command_finish(self, count: int) -> None:
        """Fill what is kept of finished jobs."""
        self.finish(count)

    def command_enqueue(self, count: int) -> dict[str, float]:
        """Measure enqueueing one by one."""
        self.enqueue(WARM_UP)
        return _timed(lambda: self.enqueue(count))

    def command_bulk(self, count: int, batch: int) -> dict[str, float]:
        """Measure enqueueing many at once."""
        self.enqueue_bulk(batch, batch)
        return _timed(lambda: self.enqueue_bulk(count, batch))

    def command_latency(self, count: int) -> dict[str, list[float]]:
        """Enqueue jobs now and then, and return when each call began and ended."""
        self._await_worker()
        spacing = random.Random(count)  # noqa: S311
        calls, returns = [], []
        for number in range(count):
            time.sleep(spacing.uniform(*SPACING))
            calls.append(time.monotonic())
            self.enqueue_one(number)
            returns.append(time.monotonic())
        return {"calls": calls, "returns": returns}

    def _await_worker(self) -> None:
        """Enqueue a few jobs, so that everybody is up, connected and at rest again."""
        path = Path(os.environ["BENCH_MARKS"])
        for attempt in range(FIRST_JOBS):
            self.enqueue_one(-1)
            deadline = time.monotonic() + SECONDS_TO_BEGIN
            while marks.count(path) <= attempt:
                if time.monotonic() > deadline:
                    raise TimeoutError("No worker has run the first jobs.")
                time.sleep(0.005)
            time.sleep(PAUSE)


class DjangoSystem(System):
    """A system that lives in a Django project, `benchmarks/project`."""

    databases = (POSTGRESQL, MARIADB, SQLITE)
    dashboard: ClassVar[str] = ""
    """The module that fills and visits its pages in the admin, if it has any."""

    def __enter__(self) -> Self:
        import django

        django.setup()
        return self

    def prepare(self) -> None:
        """Run the migrations."""
        from django.core.management import call_command

        call_command("migrate", verbosity=0)

    def command_stock(self, count: int) -> None:
        """Write so many jobs in all states, and what else its pages show."""
        import_module(self.dashboard).stock(count)

    def command_browse(self) -> dict[str, dict[str, float]]:
        """Measure its pages."""
        from benchmarks.dashboard.visits import visit

        pages = import_module(self.dashboard)
        pages.refresh()
        return visit(pages.pages())

    def manage(self, *arguments: str) -> list[str]:
        """Return the command line of a management command."""
        return python("-m", "django", *arguments)


def python(*arguments: str) -> list[str]:
    """Return a command line for the interpreter that runs this."""
    return [sys.executable, *arguments]


def program(name: str, *arguments: str) -> list[str]:
    """Return a command line for a program that a package has installed beside it."""
    return [os.path.join(os.path.dirname(sys.executable), name), *arguments]  # noqa: PTH118, PTH120


def django_database(url: str, kind: str) -> dict[str, Any]:
    """Return what Django's DATABASES has to say about an address."""
    parts = urlsplit(url)
    if kind == SQLITE:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": parts.path,
            "OPTIONS": {
                "timeout": 20,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
            },
        }
    engine = {POSTGRESQL: "postgresql", MARIADB: "mysql"}[kind]
    return {
        "ENGINE": f"django.db.backends.{engine}",
        "NAME": parts.path.lstrip("/"),
        "USER": parts.username,
        "HOST": parts.hostname,
        "PORT": parts.port,
    }


def _timed(work: Callable[[], None]) -> dict[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    work()
    return {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
    }
