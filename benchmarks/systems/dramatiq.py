"""Dramatiq: Redis as the broker, processes and threads, no durability bought here."""

from typing import Any, Self
from uuid import uuid4

from benchmarks.systems.base import (
    REDIS,
    Commands,
    Configuration,
    System,
    program,
)

APP = "benchmarks.project.dramatiq_app"
QUEUE = "dramatiq:default"
BATCH = 5_000


class Dramatiq(System):
    """Dramatiq by its command."""

    name = "dramatiq"
    databases = (REDIS,)
    has_bulk = False
    configurations = {
        "default": Configuration("one process for each core × 8 threads"),
        "best": Configuration(
            "2 processes × 2 threads, prefetch 100",
            jobs=60_000,
            options={"arguments": ["-p2", "-t2"], "prefetch": 100},
        ),
    }

    def environment(self) -> dict[str, str]:
        """Pass the prefetch on."""
        prefetch = self.options.get("prefetch")
        return {"dramatiq_queue_prefetch": str(prefetch)} if prefetch else {}

    def worker(self) -> Commands:
        """Run the documented command."""
        return [program("dramatiq", APP, *self.options.get("arguments", ()))]

    def __enter__(self) -> Self:
        from benchmarks.project import dramatiq_app

        self._broker: Any = dramatiq_app.broker
        self._work: Any = dramatiq_app.work
        return self

    def prepare(self) -> None:
        """Do nothing: the broker creates what it needs."""

    def enqueue_one(self, number: int) -> None:
        """Send a message."""
        self._work.send(number)

    def fill(self, count: int) -> None:
        """Write what its broker would write, many at once."""
        for first in range(0, count, BATCH):
            numbers = range(first, min(first + BATCH, count))
            messages = dict(self._message(number) for number in numbers)
            self._broker.client.hset(f"{QUEUE}.msgs", mapping=messages)
            self._broker.client.rpush(QUEUE, *messages)

    def _message(self, number: int) -> tuple[str, bytes]:
        key = str(uuid4())
        message = self._work.message(number)
        return key, message.copy(options={"redis_message_id": key}).encode()


SYSTEM = Dramatiq
