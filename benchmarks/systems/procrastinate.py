"""procrastinate: PostgreSQL, functions in the database, jobs claimed one by one."""

from typing import Any, Self

from benchmarks.systems.base import (
    POSTGRESQL,
    Commands,
    Configuration,
    DjangoSystem,
    program,
)
from benchmarks.systems.copies import replicate

APP = "benchmarks.project.procrastinate_app.app"


class Procrastinate(DjangoSystem):
    """Enqueued over Django's connection, worked off by its own command.

    Either is the quicker of the two ways: its own pool needs three statements for an
    enqueue, and the worker of its Django app tidies connections up around each job.
    """

    name = "procrastinate"
    databases = (POSTGRESQL,)
    fills_deep = True
    configurations = {
        "default": Configuration("1 process, concurrency 1", jobs=5_000),
        "best": Configuration(
            "4 processes, concurrency 5, pools of 5, quiet",
            jobs=10_000,
            asynchronous=True,
            options={"processes": 4, "concurrency": 5},
        ),
    }

    def environment(self) -> dict[str, str]:
        """Give each job that runs a connection."""
        pool = self.options.get("concurrency")
        return {"BENCH_POOL": str(pool)} if pool else {}

    def django_settings(self) -> dict[str, Any]:
        """Add its app."""
        return {"INSTALLED_APPS": ["procrastinate.contrib.django"]}

    def worker(self) -> Commands:
        """Run the documented command, once for each process."""
        command = program("procrastinate", f"--app={APP}")
        if not self.options:
            return [[*command, "worker"]]
        concurrency = f"--concurrency={self.options['concurrency']}"
        command += ["--log-level=error", "worker", concurrency]
        return [command] * self.options["processes"]

    def __enter__(self) -> Self:
        super().__enter__()
        from procrastinate.contrib.django import app

        name = "work_async" if self.asynchronous else "work"
        self._work = app.configure_task(name, allow_unknown=True)
        return self

    def enqueue_one(self, number: int) -> None:
        """Defer a job."""
        self._work.defer(number=number)

    def enqueue_bulk(self, count: int, batch: int) -> None:
        """Defer lists."""
        for first in range(0, count, batch):
            numbers = range(first, min(first + batch, count))
            self._work.batch_defer(*[{"number": number} for number in numbers])

    def fill(self, count: int) -> None:
        """Defer one job, and copy its row without calling triggers for each."""
        from django.db import connection, transaction

        self.enqueue_one(0)
        changes = {"id": None, "args": "jsonb_build_object('number', number)"}
        with transaction.atomic(), connection.cursor() as cursor:
            # Events and notifications of rows that nobody waits for yet.
            cursor.execute("SET LOCAL session_replication_role = replica")
            replicate(cursor, POSTGRESQL, "procrastinate_jobs", count - 1, **changes)


SYSTEM = Procrastinate
