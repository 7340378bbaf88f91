"""Is there room for all that is configured, on this host and on its servers?"""

import os
from collections.abc import Iterator

from django.core.checks import CheckMessage
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from robust_queue import configuration
from robust_queue.sizing import connections_needed, worker_processes

from . import messages

PROCESSES_PER_CORE = 2
# More of them spend their time waiting for the lock of the interpreter.
MOST_THREADS = 50

# What the server keeps for its administrators is not for the queue.
_ALLOWED_BY_POSTGRESQL = """
    SELECT SUM(CASE name WHEN 'max_connections' THEN 1 ELSE -1 END * setting::integer)
    FROM pg_settings
    WHERE name IN
        ('max_connections', 'superuser_reserved_connections', 'reserved_connections')
"""
# Zero means that the user has no limit of its own.
_ALLOWED_BY_MYSQL = """
    SELECT LEAST(
        @@max_connections,
        COALESCE(NULLIF(@@max_user_connections, 0), @@max_connections)
    )
"""
ALLOWED = {"postgresql": _ALLOWED_BY_POSTGRESQL, "mysql": _ALLOWED_BY_MYSQL}


def judge_host() -> Iterator[CheckMessage]:
    """Compare the workers with the cores they share."""
    options = configuration.current()
    processes, cores = worker_processes(options), usable_cores()
    path = configuration.path_of("workers")
    if processes > PROCESSES_PER_CORE * cores:
        yield messages.more_processes_than_cores(path, processes, cores)
    for index, worker in enumerate(options.effective_workers):
        if worker.threads > MOST_THREADS:
            yield messages.too_many_threads(f"{path}[{index}]", worker.threads)


def judge_connections(alias: str) -> Iterator[CheckMessage]:
    """Compare what one supervisor needs with what its server allows."""
    connection, options = connections[alias], configuration.current()
    listens = connection.vendor == "postgresql" and options.notifications
    needed = connections_needed(options, listens=listens)
    allowed = connections_allowed(connection)
    if allowed is not None and needed > allowed:
        yield messages.too_few_connections(alias, needed, allowed)


def usable_cores() -> int:
    """The cores on which this process may run, as its parent may have decided."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def connections_allowed(connection: BaseDatabaseWrapper) -> int | None:
    """Ask the server how many connections it grants; None if it has no such limit."""
    if connection.vendor not in ALLOWED:
        return None
    with connection.cursor() as cursor:
        cursor.execute(ALLOWED[connection.vendor])
        (number,) = cursor.fetchone()
    return int(number)
