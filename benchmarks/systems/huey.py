"""huey: a list in Redis or a table, jobs taken one by one."""

from typing import Any, Self

from benchmarks.systems.base import (
    POSTGRESQL,
    REDIS,
    SQLITE,
    Commands,
    Configuration,
    System,
    program,
)

APP = "benchmarks.project.huey_app.huey"
BATCH = 5_000


class Huey(System):
    """huey by its consumer."""

    name = "huey"
    databases = (REDIS, SQLITE, POSTGRESQL)
    has_bulk = False
    configurations = {
        "default": Configuration("1 thread", jobs=40_000),
        "best": Configuration(
            "2 processes (SQLite: 1 thread), no periodic tasks, quiet",
            jobs=60_000,
            options={"arguments": ["-n", "-q"], "processes": ["-w2", "-kprocess"]},
        ),
    }

    def worker(self) -> Commands:
        """Run the documented command."""
        arguments = list(self.options.get("arguments", ()))
        # A second one only waits for SQLite's lock.
        if self.kind != SQLITE:
            arguments += self.options.get("processes", ())
        return [program("huey_consumer", APP, *arguments)]

    def __enter__(self) -> Self:
        from benchmarks.project import huey_app

        self._huey: Any = huey_app.huey
        self._work: Any = huey_app.work
        return self

    def prepare(self) -> None:
        """Do nothing: what it needs is created when it connects."""

    def enqueue_one(self, number: int) -> None:
        """Enqueue a job."""
        self._work(number)

    def fill(self, count: int) -> None:
        """Write what its API would write, many at once."""
        write = {REDIS: self._push, SQLITE: self._insert, POSTGRESQL: self._insert}
        for first in range(0, count, BATCH):
            numbers = range(first, min(first + BATCH, count))
            jobs = [self._huey.serialize_task(self._work.s(n)) for n in numbers]
            write[self.kind](jobs)

    def _push(self, jobs: list[bytes]) -> None:
        storage = self._huey.storage
        storage.conn.lpush(storage.queue_key, *jobs)

    def _insert(self, jobs: list[bytes]) -> None:
        storage = self._huey.storage
        rows = [(storage.name, job, 0) for job in jobs]
        mark, table = ("?", "task") if self.kind == SQLITE else ("%s", "huey_task")
        values = f"({mark}, {mark}, {mark})"
        statement = f"INSERT INTO {table} (queue, data, priority) VALUES {values}"
        with storage.db(commit=True) as cursor:
            cursor.executemany(statement, rows)


SYSTEM = Huey
