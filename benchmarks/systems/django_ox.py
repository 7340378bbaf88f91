"""django-ox: one table, threads, leases."""

from typing import Any

from benchmarks.systems.base import Commands, Configuration
from benchmarks.systems.copies import NEW_UUID, renumbered, replicate
from benchmarks.systems.django_peers import DjangoPeer

TABLE = "django_ox_oxtask"


class DjangoOx(DjangoPeer):
    """django-ox by its command, whose supervisor starts processes."""

    name = "django-ox"
    fills_deep = True
    configurations = {
        "default": Configuration("1 process × 1 thread", jobs=5_000),
        "best": Configuration(
            "2 processes × 8 threads, connections kept",
            jobs=10_000,
            options={"processes": 2, "concurrency": 8},
        ),
    }

    def django_settings(self) -> dict[str, Any]:
        """Add its app and its backend."""
        return {
            "INSTALLED_APPS": ["django_ox"],
            "TASKS": {"default": {"BACKEND": "django_ox.backend.OxBackend"}},
            "DATABASES": self.database(None if self.options else 0),
        }

    def worker(self) -> Commands:
        """Run the documented command."""
        options = [f"--{name}={value}" for name, value in self.options.items()]
        return [self.manage("ox_worker", *options)]

    def enqueue_bulk(self, count: int, batch: int) -> None:
        """Enqueue lists."""
        from django_ox.bulk import enqueue_many

        for first in range(0, count, batch):
            numbers = range(first, min(first + batch, count))
            enqueue_many(self.work, [((number,), {}) for number in numbers])

    def fill(self, count: int) -> None:
        """Enqueue one job, and copy its row."""
        from django.db import connection, transaction

        self.enqueue_one(0)
        changes = {"id": NEW_UUID[self.kind], "args": renumbered(self.kind, "args")}
        with transaction.atomic(), connection.cursor() as cursor:
            replicate(cursor, self.kind, TABLE, count - 1, **changes)


SYSTEM = DjangoOx
