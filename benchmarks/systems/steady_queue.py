"""steady-queue: Solid Queue's design for Django, threads, no prefetch."""

from datetime import timedelta
from typing import Any

from benchmarks.systems.base import Commands, Configuration
from benchmarks.systems.copies import renumbered, replicate
from benchmarks.systems.django_peers import DjangoPeer

JOBS = "steady_queue_job"
READY = "steady_queue_readyexecution"
# Its documentation asks for two connections more than threads.
SPARE_CONNECTIONS = 2


class SteadyQueue(DjangoPeer):
    """steady-queue by its command, which forks workers and a dispatcher."""

    name = "steady-queue"
    has_bulk = False
    fills_deep = True
    configurations = {
        "default": Configuration("1 process × 3 threads", jobs=2_000),
        "best": Configuration(
            "2 processes × 20 threads, pool of 22 connections",
            jobs=5_000,
            options={"processes": 2, "threads": 20},
        ),
    }

    def django_settings(self) -> dict[str, Any]:
        """Add its app, its backend and the options of its workers."""
        settings: dict[str, Any] = {
            "INSTALLED_APPS": ["django.contrib.contenttypes", "steady_queue"],
            "TASKS": {
                "default": {
                    "BACKEND": "steady_queue.backend.SteadyQueueBackend",
                    "QUEUES": ["default"],
                    "OPTIONS": {},
                }
            },
        }
        if self.options:
            connections = self.options["threads"] + SPARE_CONNECTIONS
            pool = {"min_size": SPARE_CONNECTIONS, "max_size": connections}
            settings["DATABASES"] = self.database(pool=pool)
            settings["STEADY_QUEUE"] = self._workers()
        return settings

    def _workers(self) -> Any:
        from steady_queue.configuration import Configuration as Workers

        worker = Workers.Worker(polling_interval=timedelta(seconds=0.1), **self.options)
        return Workers.Options(workers=[worker])

    def worker(self) -> Commands:
        """Run the documented command."""
        return [self.manage("steady_queue")]

    def fill(self, count: int) -> None:
        """Enqueue one job, and copy its rows."""
        from django.db import connection, transaction

        self.enqueue_one(0)
        changes = {"id": None, "arguments": renumbered(self.kind, "arguments")}
        with transaction.atomic(), connection.cursor() as cursor:
            replicate(cursor, self.kind, JOBS, count - 1, **changes)
            cursor.execute(
                f"""
                INSERT INTO {READY} (job_id, queue_name, priority, created_at)
                SELECT id, queue_name, priority, created_at FROM {JOBS}
                WHERE id NOT IN (SELECT job_id FROM {READY})
                """
            )


SYSTEM = SteadyQueue
