"""Celery: Redis as the broker, jobs prefetched, no durability bought here."""

import base64
import json
import os
from collections.abc import Iterator
from typing import Any, Self
from uuid import uuid4

from benchmarks.systems.base import (
    REDIS,
    Commands,
    Configuration,
    System,
    program,
)

APP = "benchmarks.project.celery_app"
QUEUE = "celery"
BATCH = 5_000


class Celery(System):
    """Celery by its command."""

    name = "celery"
    databases = (REDIS,)
    has_bulk = False
    configurations = {
        "default": Configuration("prefork, one child for each core", jobs=15_000),
        "best": Configuration(
            "2 nodes, pool solo, prefetch 128, no gossip, mingle, heartbeat, events",
            jobs=20_000,
            options={
                "nodes": 2,
                "prefetch": 128,
                "arguments": [
                    "--pool=solo",
                    "--without-gossip",
                    "--without-mingle",
                    "--without-heartbeat",
                    "--loglevel=ERROR",
                ],
            },
        ),
    }

    def environment(self) -> dict[str, str]:
        """Pass the prefetch on; root is nothing to warn of here."""
        prefetch = self.options.get("prefetch")
        extra = {"BENCH_PREFETCH": str(prefetch)} if prefetch else {}
        return {"C_FORCE_ROOT": "1", **extra}

    def worker(self) -> Commands:
        """Run the documented command, once for each node."""
        command = program("celery", "-A", APP, "worker")
        command += self.options.get("arguments", ())
        nodes = range(self.options.get("nodes", 1))
        return [[*command, "-n", f"node{node}@bench"] for node in nodes]

    def __enter__(self) -> Self:
        from benchmarks.project.celery_app import work

        self._work: Any = work
        return self

    def prepare(self) -> None:
        """Do nothing: the broker creates what it needs."""

    def enqueue_one(self, number: int) -> None:
        """Send a task."""
        self._work.delay(number)

    def fill(self, count: int) -> None:
        """Send one task, and copy its message."""
        import redis

        self.enqueue_one(0)
        client = redis.Redis.from_url(os.environ["BENCH_DATABASE_URL"])
        sample = json.loads(client.lindex(QUEUE, 0))
        copies = list(_copies(sample, count - 1))
        for first in range(0, len(copies), BATCH):
            client.lpush(QUEUE, *copies[first : first + BATCH])


def _copies(message: dict[str, Any], count: int) -> Iterator[str]:
    _, keywords, embedded = json.loads(base64.b64decode(message["body"]))
    for number in range(1, count + 1):
        body = json.dumps([[number], keywords, embedded]).encode()
        message["body"] = base64.b64encode(body).decode()
        task = str(uuid4())
        message["headers"] |= {"id": task, "root_id": task, "argsrepr": f"({number},)"}
        message["properties"]["correlation_id"] = task
        message["properties"]["delivery_tag"] = str(uuid4())
        yield json.dumps(message)


SYSTEM = Celery
