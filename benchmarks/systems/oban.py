"""oban: PostgreSQL, asyncio, jobs claimed in batches and acknowledged together."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any, Self

from benchmarks.systems.base import (
    POSTGRESQL,
    Commands,
    Configuration,
    System,
    program,
    python,
)
from benchmarks.systems.copies import replicate

JOBS = "benchmarks.project.oban_jobs"


class Oban(System):
    """oban on uvloop, by its command or embedded."""

    name = "oban"
    databases = (POSTGRESQL,)
    fills_deep = True
    configurations = {
        "default": Configuration(
            "`oban start`, 1 process, limit 10",
            asynchronous=True,
        ),
        "best": Configuration(
            "embedded, 2 processes, limit 100, no log of jobs",
            jobs=40_000,
            asynchronous=True,
            options={"processes": 2, "limit": 100},
        ),
    }

    def environment(self) -> dict[str, str]:
        """Tell the command where the database is."""
        return {"OBAN_DSN": self.url}

    def worker(self) -> Commands:
        """Run the command by default, otherwise this module for each process."""
        if not self.options:
            options = ["--queues", "default:10", "--cron-modules", JOBS]
            return [program("oban", "start", *options)]
        command = python("-m", "benchmarks.systems.oban", str(self.options["limit"]))
        return [command] * self.options["processes"]

    def __enter__(self) -> Self:
        import uvloop
        from oban import Oban as Instance

        from benchmarks.project.oban_jobs import work

        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._work: Any = work
        self._pool = self._run(Instance.create_pool(self.url))
        self._oban = Instance(pool=self._pool)
        return self

    def __exit__(self, *error: object) -> None:
        self._run(self._pool.close())
        self._runner.close()

    def prepare(self) -> None:
        """Do what `oban install` does."""
        from oban.schema import install

        self._run(install(self._pool))

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
        """Enqueue one job, and copy its row."""
        import psycopg

        self.enqueue_one(0)
        number = "jsonb_build_object('number', number)"
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            changes = {"id": None, "args": number}
            replicate(cursor, POSTGRESQL, "oban_jobs", count - 1, **changes)

    async def _enqueue(self, number: int) -> None:
        # `work.enqueue(number)` of 0.7.0 wraps the arguments twice.
        await self._oban.enqueue(self._work.new(number))

    async def _enqueue_each(self, count: int) -> None:
        for number in range(count):
            await self._enqueue(number)

    async def _enqueue_lists(self, count: int, batch: int) -> None:
        for first in range(0, count, batch):
            numbers = range(first, min(first + batch, count))
            await self._oban.enqueue_many(self._work.new(number) for number in numbers)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(work)


async def work_off(limit: int) -> None:
    """Process jobs inside of an application's event loop until SIGTERM."""
    from oban import Oban as Instance

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    pool = await Instance.create_pool(os.environ["BENCH_DATABASE_URL"])
    async with Instance(pool=pool, queues={"default": limit}):
        await stop.wait()
    await pool.close()


def main() -> None:
    """Run a worker with the loop and the JSON that `oban start` chooses too."""
    import orjson
    import uvloop
    from psycopg.types.json import set_json_dumps, set_json_loads

    set_json_dumps(orjson.dumps)
    set_json_loads(orjson.loads)
    uvloop.run(work_off(int(sys.argv[1])))


SYSTEM = Oban

if __name__ == "__main__":
    main()
