"""dj-queue: Solid Queue's design for Django, threads, prefetch."""

from typing import Any

from benchmarks.systems.base import BURST, DASHBOARD, Commands, Configuration
from benchmarks.systems.copies import NEW_UUID, renumbered, replicate
from benchmarks.systems.django_peers import DjangoPeer

JOBS = "dj_queue_jobs"
READY = "dj_queue_ready_executions"
# Its documentation asks for a positive one, and measures with this.
CONN_MAX_AGE = 60


class DjQueue(DjangoPeer):
    """dj-queue by its command, which forks workers."""

    name = "dj-queue"
    dashboard = "benchmarks.dashboard.theirs"
    fills_deep = True
    configurations = {
        "default": Configuration("1 process × 3 threads", jobs=3_000),
        "best": Configuration(
            "2 processes × 8 threads, prefetch 8, connections kept",
            jobs=15_000,
            options={"processes": 2, "threads": 8, "prefetch_multiplier": 8},
        ),
        DASHBOARD: Configuration("its pages in the admin"),
    }

    def django_settings(self) -> dict[str, Any]:
        """Add its app, its router and its backend."""
        options: dict[str, Any] = {}
        if self.options:
            options["workers"] = [{"queues": "*", **self.options}]
        return {
            "INSTALLED_APPS": ["dj_queue"],
            "DATABASE_ROUTERS": ["dj_queue.routers.DjQueueRouter"],
            "TASKS": {
                "default": {
                    "BACKEND": "dj_queue.backend.DjQueueBackend",
                    "QUEUES": [],
                    "OPTIONS": options,
                }
            },
            "DATABASES": self.database(CONN_MAX_AGE if self.options else 0),
        }

    def worker(self) -> Commands:
        """Run the documented command."""
        return [self.manage("dj_queue")]

    def enqueue_bulk(self, count: int, batch: int) -> None:
        """Enqueue lists."""
        self._enqueue_all(self.work, count, batch)

    def _enqueue_all(self, task: Any, count: int, batch: int) -> None:
        backend = task.get_backend()
        for first in range(0, count, batch):
            numbers = range(first, min(first + batch, count))
            backend.enqueue_all([(task, [number], {}) for number in numbers])

    def fill(self, count: int) -> None:
        """Enqueue one job, and copy its rows."""
        from django.db import connection, transaction

        self.enqueue_one(0)
        payload = renumbered(self.kind, "payload")
        changes = {"id": NEW_UUID[self.kind], "payload": payload}
        with transaction.atomic(), connection.cursor() as cursor:
            replicate(cursor, self.kind, JOBS, count - 1, **changes)
            cursor.execute(
                f"""
                INSERT INTO {READY}
                    (job_id, backend_alias, queue_name, priority,
                     created_at, latency_started_at)
                SELECT id, backend_alias, queue_name, priority, created_at, created_at
                FROM {JOBS}
                WHERE id NOT IN (SELECT job_id FROM {READY})
                """
            )

    def command_fill_hot(self, count: int) -> None:
        """Enqueue jobs that share one key, which lets one of them run at a time."""
        from benchmarks.project.dj_queue_tasks import work_hot

        self._enqueue_all(work_hot, count, BURST)


SYSTEM = DjQueue
