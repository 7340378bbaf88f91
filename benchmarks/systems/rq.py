"""RQ: Redis, a fork for each job unless told otherwise, no durability bought here."""

from typing import Any, Self

from benchmarks.systems.base import (
    REDIS,
    Commands,
    Configuration,
    System,
    program,
)

BATCH = 1_000


class Rq(System):
    """RQ by its command."""

    name = "rq"
    databases = (REDIS,)
    configurations = {
        "default": Configuration("1 worker, a fork for each job", jobs=1_000),
        "best": Configuration(
            "2 workers of the class SimpleWorker, quiet",
            jobs=10_000,
            options={
                "workers": 2,
                "arguments": ["-w", "rq.worker.SimpleWorker", "-q"],
            },
        ),
    }

    def worker(self) -> Commands:
        """Run the documented command, once for each worker."""
        command = program("rq", "worker", "--url", self.url)
        command += self.options.get("arguments", ())
        return [command] * self.options.get("workers", 1)

    def __enter__(self) -> Self:
        import redis
        from rq import Queue

        from benchmarks.project.rq_jobs import work

        self._queue: Any = Queue(connection=redis.Redis.from_url(self.url))
        self._work = work
        return self

    def prepare(self) -> None:
        """Do nothing: what it needs is created with the first job."""

    def enqueue_one(self, number: int) -> None:
        """Enqueue a job."""
        self._queue.enqueue(self._work, number)

    def enqueue_bulk(self, count: int, batch: int) -> None:
        """Enqueue lists."""
        for first in range(0, count, batch):
            numbers = range(first, min(first + batch, count))
            calls = [self._queue.prepare_data(self._work, (n,)) for n in numbers]
            self._queue.enqueue_many(calls)

    def fill(self, count: int) -> None:
        """Enqueue lists, which is quick enough for what it drains."""
        self.enqueue_bulk(count, BATCH)


SYSTEM = Rq
