"""Robust Queue, from this checkout."""

import time
from typing import Any

from benchmarks.api import serving
from benchmarks.plan import ONE_BY_ONE
from benchmarks.systems.base import (
    BURST,
    DASHBOARD,
    POSTGRESQL,
    Commands,
    Configuration,
    DjangoSystem,
    python,
)

TASKS = "benchmarks.project.robust_queue_tasks"
RECURRING = "benchmarks.project.robust_queue_recurring"
OUTSIDE = "benchmarks.project.robust_queue_outside"
CHUNK = 5_000
MILLION = 1_000_000


def _served_by(server: str, *, batch: int) -> dict[str, Any]:
    return {"server": server, "batch": batch, "task_modules": [OUTSIDE]}


class RobustQueue(DjangoSystem):
    """Ours. What a configuration's options hold goes into the setting ROBUST_QUEUE."""

    name = "robust-queue"
    dashboard = "benchmarks.dashboard.ours"
    fills_deep = True
    configurations = {
        "default": Configuration(
            "1 process × 3 threads",
            jobs=40_000,
        ),
        "best": Configuration(
            "2 processes × 3 threads, log of warnings",
            jobs=100_000,
            options={"workers": [{"processes": 2}], "verbosity": 0},
        ),
        "best async": Configuration(
            "2 processes, log of warnings",
            jobs=100_000,
            asynchronous=True,
            options={"workers": [{"processes": 2}], "verbosity": 0},
        ),
        # A scheduler runs only where something recurs.
        "scheduler": Configuration(
            "1 process × 3 threads, a recurring task",
            options={"task_modules": [RECURRING]},
        ),
        DASHBOARD: Configuration("its pages in the admin"),
        # Not for comparison: what the workloads of our own need.
        "20 threads": Configuration(
            "1 process × 20 threads",
            jobs=10_000,
            options={"workers": [{"threads": 20}]},
        ),
        "pair": Configuration(
            "2 processes × 3 threads",
            options={"workers": [{"processes": 2}]},
        ),
        "5 threads": Configuration(
            "1 process × 5 threads",
            options={"workers": [{"threads": 5}]},
        ),
        # Workers outside, over HTTP.
        serving.GUNICORN: Configuration(
            f"gunicorn, 1 process × {serving.THREADS} threads",
            jobs=20_000,
            options=_served_by(serving.GUNICORN, batch=50),
        ),
        serving.UVICORN: Configuration(
            "uvicorn, 1 process",
            jobs=20_000,
            options=_served_by(serving.UVICORN, batch=50),
        ),
        ONE_BY_ONE: Configuration(
            f"gunicorn, 1 process × {serving.THREADS} threads",
            jobs=20_000,
            options=_served_by(serving.GUNICORN, batch=1),
        ),
    }

    def django_settings(self) -> dict[str, Any]:
        """Two settings, as in the README."""
        modules = [TASKS, *self.options.get("task_modules", ())]
        options = {**self.options, "supervisor_pidfile": None, "task_modules": modules}
        for each in ("verbosity", "server", "batch"):
            options.pop(each, None)
        return {
            "INSTALLED_APPS": ["robust_queue"],
            "TASKS": {
                "default": {
                    "BACKEND": "robust_queue.backend.RobustQueueBackend",
                    "QUEUES": ["default", "outside"],
                }
            },
            "ROBUST_QUEUE": options,
        }

    def worker(self) -> Commands:
        """One supervisor, which starts the others; or workers outside and a server."""
        if self._server:
            return self._workers_outside(serving.free_port())
        verbosity = str(self.options.get("verbosity", 1))
        return [self.manage("robust_queue", "--verbosity", verbosity)]

    def _workers_outside(self, port: int) -> Commands:
        work = python("-m", "benchmarks.systems", self.name, "work_outside", str(port))
        return [serving.command(self._server, port), work]

    def enqueue_one(self, number: int) -> None:
        """Call `enqueue()`."""
        self._task.enqueue(number)

    def enqueue_bulk(self, count: int, batch: int) -> None:
        """Call `enqueue_all()` for lists."""
        self._enqueue_all(self._task, count, batch)

    def _enqueue_all(self, task: Any, count: int, batch: int) -> None:
        from robust_queue import enqueue_all

        for first in range(0, count, batch):
            numbers = range(first, min(first + batch, count))
            enqueue_all([task.bind(number) for number in numbers])

    def fill(self, count: int) -> None:
        """Copy one job on PostgreSQL, enqueue many at once elsewhere."""
        if self.kind != POSTGRESQL:
            self.enqueue_bulk(count, CHUNK)
            return
        self.enqueue_one(0)
        self._execute(f"CREATE TEMPORARY TABLE copies AS {_IDS}", count - 1)
        for table, key in (("jobs", "id"), ("ready_executions", "job_id")):
            self._copy(f"robust_queue_{table}", key)

    def _copy(self, table: str, key: str) -> None:
        columns = [
            name
            for (name,) in self._execute(
                "SELECT column_name FROM information_schema.columns "
                "WHERE table_name = %s AND column_name <> %s",
                table,
                key,
            )
        ]
        values = [_RENUMBERED.get(name, f"one.{name}") for name in columns]
        self._execute(
            f"INSERT INTO {table} ({key}, {', '.join(columns)}) "
            f"SELECT copies.copy_id, {', '.join(values)} "
            f"FROM copies, (SELECT * FROM {table} LIMIT 1) one ORDER BY copy_id"
        )

    def finish(self, count: int) -> None:
        """Write jobs as they are kept after they have run, on PostgreSQL."""
        self.fill(count)
        self._execute(
            "INSERT INTO robust_queue_finished_executions "
            "(job_id, attempts, worker_id, started_at, finished_at, result) "
            "SELECT id, 1, 'worker-1', now(), now(), 'null' FROM robust_queue_jobs"
        )
        self._execute("DELETE FROM robust_queue_ready_executions")

    def command_fill_hot(self, count: int) -> None:
        """Enqueue jobs that share one key, which lets one of them run at a time."""
        from benchmarks.project.robust_queue_tasks import work_hot

        self._enqueue_all(work_hot, count, BURST)

    # Workloads of our own.

    def command_fill_keyed(self, count: int) -> None:
        """Enqueue jobs that have their keys in turn, each of which lets one run."""
        from benchmarks.project.robust_queue_tasks import work_keyed

        self._enqueue_all(work_keyed, count, BURST)

    def command_naps(self, count: int, milliseconds: int) -> list[float]:
        """Enqueue tasks that sleep, all at once; tell when."""
        from benchmarks.project.robust_queue_tasks import nap
        from robust_queue import enqueue_all

        naps = [nap.bind(number, milliseconds / 1000) for number in range(count)]
        called = time.monotonic()
        enqueue_all(naps)
        return [called, time.monotonic()]

    def command_mix(self, seconds: int) -> dict[int, float]:
        """Enqueue a hundred short tasks a second beside two or three long ones.

        Long ones have numbers below zero. Returns when each call returned.
        """
        from benchmarks.project.robust_queue_tasks import nap

        returns = {}
        began = time.monotonic()
        for number in range(seconds * 100):
            time.sleep(max(0.0, began + number / 100 - time.monotonic()))
            if number % 40 == 0:
                nap.enqueue(-1 - number, 1.0)
            nap.enqueue(number, 0.001)
            returns[number] = time.monotonic()
        return returns

    def command_work_outside(self, port: int) -> None:
        """Work off the queue over HTTP, until somebody ends this."""
        from django.db import connection

        from benchmarks.api import outside
        from robust_queue.lifecycle.tokens import create_token

        _, token = create_token(
            "default", name="bench", scopes=["work:*"], requests_per_minute=MILLION
        )
        connection.close()
        outside.work(port, self.options["batch"], token)

    @property
    def _server(self) -> str:
        return str(self.options.get("server", ""))

    @property
    def _task(self) -> Any:
        if self._server:
            from benchmarks.project.robust_queue_outside import work_outside

            return work_outside
        from benchmarks.project import robust_queue_tasks as tasks

        return tasks.work_async if self.asynchronous else tasks.work

    def _execute(self, statement: str, *parameters: object) -> list[Any]:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return cursor.fetchall() if cursor.description else []


# UUIDs of version 7 that sort in the order of their numbers, all of them in the past.
_IDS = """
    SELECT (
        lpad(to_hex(began + number / 4096), 12, '0') || '7'
        || lpad(to_hex(number %% 4096), 3, '0')
        || '8' || substr(md5(number::text), 1, 15)
    )::uuid AS copy_id, number
    FROM generate_series(1, %s) number,
        (SELECT (extract(epoch FROM now()) * 1000)::bigint - 3600000 AS began) clock
"""

# The only number in the arguments is the one that the first job was given.
_RENUMBERED = {"arguments": "replace(one.arguments, '0', copies.number::text)"}

SYSTEM = RobustQueue
