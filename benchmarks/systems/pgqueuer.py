"""PgQueuer: PostgreSQL, asyncio, jobs claimed and completed in batches."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self

from benchmarks.marks import mark
from benchmarks.systems.base import (
    POSTGRESQL,
    Commands,
    Configuration,
    System,
    python,
)

ENTRYPOINT = "work"
BATCH = 5_000


class PgQueuer(System):
    """PgQueuer over asyncpg, on uvloop, as its documentation advises."""

    name = "pgqueuer"
    databases = (POSTGRESQL,)
    fills_deep = True
    configurations = {
        "default": Configuration(
            "1 process, batches of 10, asyncpg",
            jobs=40_000,
            asynchronous=True,
            options={"batch": 10},
        ),
        "default psycopg": Configuration(
            "1 process, batches of 10, psycopg",
            asynchronous=True,
            options={"batch": 10, "driver": "psycopg"},
        ),
        "best": Configuration(
            "2 processes, batches of 500, asyncpg, pgq autovac",
            jobs=200_000,
            asynchronous=True,
            options={"processes": 2, "batch": 500, "autovacuum": True},
        ),
        "batches of 100": Configuration(
            "2 processes, batches of 100, asyncpg, pgq autovac",
            jobs=150_000,
            asynchronous=True,
            options={"processes": 2, "batch": 100, "autovacuum": True},
        ),
    }

    def worker(self) -> Commands:
        """Run this module, once for each process."""
        command = python("-m", "benchmarks.systems.pgqueuer")
        driver = self.options.get("driver", "asyncpg")
        arguments = [str(self.options["batch"]), driver]
        return [[*command, *arguments]] * self.options.get("processes", 1)

    def __enter__(self) -> Self:
        import asyncpg
        import uvloop
        from pgqueuer.db import AsyncpgDriver
        from pgqueuer.queries import Queries

        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._connection = self._run(asyncpg.connect(self.url))
        self._queries = Queries(AsyncpgDriver(self._connection))
        return self

    def __exit__(self, *error: object) -> None:
        self._run(self._connection.close())
        self._runner.close()

    def prepare(self) -> None:
        """Do what `pgq install` does, and `pgq autovac`."""
        self._run(self._queries.install())
        if self.options.get("autovacuum"):
            self._run(self._queries.optimize_autovacuum())

    def enqueue_one(self, number: int) -> None:
        """Enqueue from outside of the event loop."""
        self._run(self._enqueue(number))

    def enqueue(self, count: int) -> None:
        """Enqueue from inside of the event loop, which is where its users are."""
        self._run(self._enqueue_each(count))

    def enqueue_bulk(self, count: int, batch: int) -> None:
        """Enqueue lists."""
        self._run(self._enqueue_lists(count, batch))

    def fill(self, count: int) -> None:
        """Enqueue long lists: one statement each, quicker than copying rows by SQL."""
        self.enqueue_bulk(count, BATCH)

    async def _enqueue(self, number: int) -> None:
        await self._queries.enqueue(ENTRYPOINT, str(number).encode())

    async def _enqueue_each(self, count: int) -> None:
        for number in range(count):
            await self._enqueue(number)

    async def _enqueue_lists(self, count: int, batch: int) -> None:
        for first in range(0, count, batch):
            payloads = [
                str(n).encode() for n in range(first, min(first + batch, count))
            ]
            many = len(payloads)
            await self._queries.enqueue([ENTRYPOINT] * many, payloads, [0] * many)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(work)


def work_off(batch: int, driver: str) -> None:
    """Do what `pgq run` does, which fails to start beside recent versions of Typer."""
    import pgqueuer
    import uvloop

    uvloop.run(pgqueuer.run(partial(application, driver), batch_size=batch))


@asynccontextmanager
async def application(driver: str) -> AsyncIterator[Any]:
    """Yield what a worker runs."""
    from pgqueuer import PgQueuer as Application
    from pgqueuer.models import Job

    async with DRIVERS[driver](os.environ["BENCH_DATABASE_URL"]) as connected:
        queue = Application(connected)

        @queue.entrypoint(ENTRYPOINT)
        async def work(job: Job) -> None:
            mark(int(job.payload or b""))

        yield queue


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[Any]:
    from pgqueuer.adapters.connections import connect_asyncpg
    from pgqueuer.db import AsyncpgDriver

    async with connect_asyncpg(url) as connection:
        yield AsyncpgDriver(connection)


@asynccontextmanager
async def _psycopg(url: str) -> AsyncIterator[Any]:
    from pgqueuer.adapters.connections import connect_psycopg
    from pgqueuer.db import PsycopgDriver

    async with connect_psycopg(url) as connection:
        yield PsycopgDriver(connection)


DRIVERS = {"asyncpg": _asyncpg, "psycopg": _psycopg}
SYSTEM = PgQueuer

if __name__ == "__main__":
    work_off(int(sys.argv[1]), sys.argv[2])
