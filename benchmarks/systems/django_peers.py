"""What the systems for Django's tasks framework have in common."""

from typing import Any, Self

from benchmarks.systems.base import POSTGRESQL, DjangoSystem, django_database


class DjangoPeer(DjangoSystem):
    """A backend of Django's tasks: `benchmarks/project/tasks.py` is enqueued."""

    def __enter__(self) -> Self:
        super().__enter__()
        from benchmarks.project.tasks import work

        self.work: Any = work
        return self

    def enqueue_one(self, number: int) -> None:
        """Enqueue a job."""
        self.work.enqueue(number)

    def database(
        self, conn_max_age: int | None = 0, pool: dict[str, int] | None = None
    ) -> dict[str, Any]:
        """Return Django's DATABASES, with connections that are kept or pooled."""
        settings = django_database(self.url, self.kind)
        if pool and self.kind == POSTGRESQL:
            settings["OPTIONS"] = {"pool": pool}
        else:
            settings["CONN_MAX_AGE"] = conn_max_age
        return {"default": settings}
