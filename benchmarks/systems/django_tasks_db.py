"""django-tasks-db: one table, one job at a time in each process."""

from typing import Any

from benchmarks.systems.base import Commands, Configuration
from benchmarks.systems.copies import NEW_UUID, renumbered, replicate
from benchmarks.systems.django_peers import DjangoPeer

TABLE = "django_tasks_database_dbtaskresult"


class DjangoTasksDb(DjangoPeer):
    """django-tasks-db by its command, once for each process."""

    name = "django-tasks-db"
    has_bulk = False
    fills_deep = True
    configurations = {
        "default": Configuration("1 process", jobs=3_000),
        "best": Configuration(
            "4 processes, connections kept, quiet",
            jobs=10_000,
            options={"processes": 4},
        ),
    }

    def django_settings(self) -> dict[str, Any]:
        """Add its app and its backend."""
        return {
            "INSTALLED_APPS": ["django_tasks_db"],
            "TASKS": {
                "default": {
                    "BACKEND": "django_tasks_db.DatabaseBackend",
                    "QUEUES": ["default"],
                }
            },
            "DATABASES": self.database(None if self.options else 0),
        }

    def worker(self) -> Commands:
        """Run the documented command."""
        if not self.options:
            return [self.manage("db_worker")]
        return [self.manage("db_worker", "-v0")] * self.options["processes"]

    def fill(self, count: int) -> None:
        """Enqueue one job, and copy its row."""
        from django.db import connection, transaction

        self.enqueue_one(0)
        number = renumbered(self.kind, "args_kwargs")
        changes = {"id": NEW_UUID[self.kind], "args_kwargs": number}
        with transaction.atomic(), connection.cursor() as cursor:
            replicate(cursor, self.kind, TABLE, count - 1, **changes)


SYSTEM = DjangoTasksDb
