"""The aliases of TASKS: which of them are Robust Queue's, and what holds for each.

The backend is above everything that asks here. So it is known by its name, and its
instances are asked where their jobs are kept.
"""

from typing import TYPE_CHECKING, TypeGuard

from django.utils.module_loading import import_string

from .compat import DEFAULT_TASK_BACKEND_ALIAS, BaseTaskBackend, task_backends
from .configuration import BackendOptions, backend_options
from .exceptions import NoQueueError

if TYPE_CHECKING:
    from .backend import RobustQueueBackend


def know_backends() -> None:
    """Have the backends made that this thread, or this context, has not used yet."""
    task_backends.all()


def backends() -> "list[RobustQueueBackend]":
    """The backends of Robust Queue, in the order of TASKS."""
    return [each for each in task_backends.all() if is_ours(each)]


def backends_of(database: str) -> "list[RobustQueueBackend]":
    """Those whose jobs are kept in that database."""
    return [each for each in backends() if each.database == database]


def database_to_serve(named: str | None = None) -> str:
    """The database of that name, else that of the alias default, or of the first."""
    ours = sorted(backends(), key=lambda each: each.alias != DEFAULT_TASK_BACKEND_ALIAS)
    known = list(dict.fromkeys(each.database for each in ours))
    if not known:
        raise NoQueueError(
            "No alias of TASKS has the backend robust_queue.backend.RobustQueueBackend."
        )
    if named is not None and named not in known:
        raise NoQueueError(
            f"Database {named!r} holds no queue. Choose from: {', '.join(known)}."
        )
    return named or known[0]


def database_named(alias: str | None) -> str:
    """The database of that alias of TASKS; without one, the one that is served."""
    if alias is None:
        return database_to_serve()
    database = database_of(task_backends[alias])
    if database is None:
        raise NoQueueError(f"The alias {alias!r} of TASKS is not Robust Queue's.")
    return database


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
    # As the backend itself reads them, which need not be made for that.
    return backend_options(
        alias, task_backends.settings.get(alias, {}).get("OPTIONS", {})
    )
