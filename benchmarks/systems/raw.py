"""What psycopg alone reaches on our tables: the limit, not a queue.

Nothing is checked, logged or signalled, no process is registered, no claim is fenced,
and nobody is told. One statement enqueues; one claims a batch and one settles it, each
a transaction of its own, as few as two guarantees allow: a claim is durable before its
task begins, and an outcome is durable before the claim is gone.
"""

import json
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID, uuid4

from benchmarks.marks import mark
from benchmarks.systems.base import (
    POSTGRESQL,
    Commands,
    Configuration,
    python,
)
from benchmarks.systems.robust_queue import RobustQueue

IDLE = 0.01
ARGUMENTS = '{"args": [0], "kwargs": {}}'
PATH = "benchmarks.project.robust_queue_tasks.work"

ENQUEUE = """
WITH job AS (
    INSERT INTO robust_queue_jobs (id, task_path, backend, queue_name, priority,
        arguments, metadata, concurrency_key, run_after, enqueued_at)
    VALUES (%(id)s, %(path)s, 'default', 'default', 0, %(arguments)s, '', '', NULL,
        %(now)s)
)
INSERT INTO robust_queue_ready_executions
    (job_id, queue_name, priority, attempts, created_at)
VALUES (%(id)s, 'default', 0, 0, %(now)s)
"""

ENQUEUE_MANY = """
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::uuid[], %(arguments)s::text[]) given (id, arguments)
), job AS (
    INSERT INTO robust_queue_jobs (id, task_path, backend, queue_name, priority,
        arguments, metadata, concurrency_key, run_after, enqueued_at)
    SELECT id, %(path)s, 'default', 'default', 0, arguments, '', '', NULL,
        %(now)s::timestamptz FROM given
)
INSERT INTO robust_queue_ready_executions
    (job_id, queue_name, priority, attempts, created_at)
SELECT id, 'default', 0, 0, %(now)s::timestamptz FROM given
"""

CLAIM = """
WITH picked AS MATERIALIZED (
    SELECT job_id FROM robust_queue_ready_executions
    ORDER BY priority, job_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM robust_queue_ready_executions
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM picked))
    RETURNING job_id, queue_name, priority, attempts
), claimed AS (
    INSERT INTO robust_queue_claimed_executions
        (job_id, queue_name, priority, attempts, created_at, process_id, token)
    SELECT job_id, queue_name, priority, attempts + 1, %(now)s, %(process)s, %(token)s
    FROM taken RETURNING job_id
)
SELECT job.id, job.task_path, job.arguments
FROM claimed JOIN robust_queue_jobs job ON job.id = claimed.job_id
"""

SETTLE = """
WITH gone AS (
    DELETE FROM robust_queue_claimed_executions WHERE job_id = ANY (%(ids)s)
    RETURNING job_id, attempts
)
INSERT INTO robust_queue_finished_executions
    (job_id, attempts, worker_id, started_at, finished_at, result)
SELECT job_id, attempts, 'raw', %(now)s, %(now)s, 'null' FROM gone
"""


class Raw(RobustQueue):
    """The same tables, through psycopg's own connection and cursor."""

    name = "raw"
    databases = (POSTGRESQL,)
    configurations = {
        "default": Configuration(
            "psycopg, 1 process, batches of 10", jobs=60_000, options={"processes": 1}
        ),
        "best": Configuration(
            "psycopg, 2 processes, batches of 100",
            jobs=250_000,
            options={"processes": 2},
        ),
    }

    def django_settings(self) -> dict[str, Any]:
        """Only the migrations are needed."""
        return {"INSTALLED_APPS": ["robust_queue"]}

    def worker(self) -> Commands:
        """Run this module, once for each process."""
        batch = "10" if self.configuration == "default" else "100"
        command = python("-m", "benchmarks.systems.raw", batch)
        return [command] * self.options["processes"]

    def __enter__(self) -> Self:
        super().__enter__()
        self._cursor = connect(self.url).cursor()
        return self

    def enqueue_one(self, number: int) -> None:
        """Run one statement."""
        values = {"id": new_id(), "path": PATH, "arguments": ARGUMENTS, "now": now()}
        self._cursor.execute(ENQUEUE, values)

    def enqueue_bulk(self, count: int, batch: int) -> None:
        """Run one statement for each list."""
        for first in range(0, count, batch):
            size = min(batch, count - first)
            values = {
                "ids": [new_id() for _ in range(size)],
                "arguments": [ARGUMENTS] * size,
                "path": PATH,
                "now": now(),
            }
            self._cursor.execute(ENQUEUE_MANY, values)


def work_off(url: str, batch: int) -> None:
    """Claim, run and settle until a signal comes."""
    cursor = connect(url).cursor()
    process = uuid4()
    while True:
        values = {"limit": batch, "now": now(), "process": process, "token": uuid4()}
        jobs = cursor.execute(CLAIM, values).fetchall()
        if jobs:
            run(jobs)
            settled = {"ids": [job[0] for job in jobs], "now": now()}
            cursor.execute(SETTLE, settled)
        else:
            time.sleep(IDLE)


def run(jobs: Sequence[tuple[UUID, str, str]]) -> None:
    """Call the work of each job with the argument it was given."""
    for _, _, arguments in jobs:
        mark(json.loads(arguments)["args"][0])


def connect(url: str) -> Any:
    """Return a connection that prepares each statement at once."""
    import psycopg

    return psycopg.connect(url, autocommit=True, prepare_threshold=0)


def new_id() -> UUID:
    """Return an identifier as our jobs have them."""
    from robust_queue.identifiers import new_job_id

    return new_job_id()


def now() -> datetime:
    """Return the time as our rows hold it."""
    return datetime.now(UTC)


SYSTEM = Raw

if __name__ == "__main__":
    import os

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    work_off(os.environ["BENCH_DATABASE_URL"], int(sys.argv[1]))
