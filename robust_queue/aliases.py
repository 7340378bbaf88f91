"""The aliases of TASKS: which of them are Robust Queue's, and what holds for each.

The backend is above everything that asks here. So it is known by its name, and its
instances are asked where their jobs are kept.
"""

from typing import TYPE_CHECKING, TypeGuard

from django.utils.module_loading import import_string

from .compat import BaseTaskBackend, task_backends
from .configuration import BackendOptions, backend_options

if TYPE_CHECKING:
    from .backend import RobustQueueBackend


def backends() -> "list[RobustQueueBackend]":
    """The backends of Robust Queue, in the order of TASKS."""
    return [each for each in task_backends.all() if is_ours(each)]


def backends_of(database: str) -> "list[RobustQueueBackend]":
    """Those whose jobs are kept in that database."""
    return [each for each in backends() if each.database == database]


def database_of(backend: BaseTaskBackend) -> str | None:
    """The database that holds the jobs of a backend; None if it is not ours."""
    return backend.database if is_ours(backend) else None


def is_ours(backend: BaseTaskBackend) -> "TypeGuard[RobustQueueBackend]":
    """Does this backend keep its tasks in a database of the application?"""
    kind: type[RobustQueueBackend]
    kind = import_string("robust_queue.backend.RobustQueueBackend")
    return isinstance(backend, kind)


def options_of(alias: str) -> BackendOptions:
    """The options of an alias, or the defaults if it was taken out of TASKS."""
    if alias in task_backends.settings:
        return backend_options(alias, task_backends[alias].options)
    return backend_options(alias, {})
