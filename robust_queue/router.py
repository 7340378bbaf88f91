"""A database router for a queue with a database of its own."""

from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model

from .aliases import backends


class RobustQueueRouter:
    """Sends Robust Queue's models to the database named in ``TASKS``.

    With several aliases on several databases, models go to the first one by default;
    the backend itself always uses that of its own alias.
    """

    app_label = "robust_queue"

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        # An alias that names no database keeps its jobs where Django would keep them.
        if model._meta.app_label != self.app_label or "task_backend" in hints:
            return None
        instance = hints.get("instance")
        if instance is not None and instance._state.db:
            return str(instance._state.db)
        return next(iter(queue_databases()), None)

    db_for_write = db_for_read

    def allow_relation(self, first: Model, second: Model, **hints: Any) -> bool | None:
        if {first._meta.app_label, second._meta.app_label} == {self.app_label}:
            return True
        return None

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        """Queue tables only where a queue is; no opinion on anything else."""
        if app_label != self.app_label:
            return None
        databases = queue_databases()
        return db in databases if databases else None


def queue_databases() -> list[str]:
    """The databases that hold queues, in the order of the aliases in ``TASKS``."""
    databases = (
        backend.queue_options.database or DEFAULT_DB_ALIAS for backend in backends()
    )
    return list(dict.fromkeys(databases))
