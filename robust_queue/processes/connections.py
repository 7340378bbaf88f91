"""Connections: the queue's own, those of tasks, and none across a fork."""

import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, TypeAlias

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend

from robust_queue.transactions import connected

Conversation: TypeAlias = Generator[Any, Any, Any]

# Seconds for which a task's connection is kept where CONN_MAX_AGE is 0, which is meant
# for web requests: a new connection for every job would cost more than most jobs.
LEAST_AGE = 60.0
# A connection unused for that long is tried before a task gets it.
QUIET = 1.0


def dedicate(alias: str, *, patience: int) -> None:
    """Give this thread a connection to the queue that suits a process without end.

    It is no part of a pool, plans every statement afresh, and gives up on a server
    that does not answer within so many seconds.
    """
    connections[alias].close()
    settings = deepcopy(connections.settings[alias])
    options = settings["OPTIONS"] = dict(settings.get("OPTIONS") or {})
    match connections[alias].vendor:
        case "postgresql":
            options |= _for_postgresql(options, patience)
        case "mysql":
            options |= _for_mysql(options, patience)
        case "sqlite":
            # A read that turns into a write would fail at once, whatever the timeout.
            options |= {"transaction_mode": "IMMEDIATE", "timeout": patience}
    settings |= {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": False}
    backend = load_backend(settings["ENGINE"])
    connections[alias] = backend.DatabaseWrapper(settings, alias)
    # What DEBUG would keep of each statement, nobody in this thread reads.
    connections[alias].queries_log = deque(maxlen=0)
    if connections[alias].vendor == "postgresql":
        _bound(connections[alias], patience)


def drop(alias: str) -> None:
    """Do away with this thread's connection, in whatever state it is."""
    connection = connections[alias]
    try:
        connection.close()
    except Exception:
        connection.connection = None


def _for_postgresql(options: dict[str, Any], patience: int) -> dict[str, Any]:
    # Prepared while the tables are empty, a statement would be slow in a burst.
    unprepared = {"prepare_threshold": None} if "prepare_threshold" in options else {}
    # All of these are the client's: a pooler in between neither sees nor minds them.
    return {
        **unprepared,
        "pool": False,
        "connect_timeout": min(int(options.get("connect_timeout") or 5), 5),
        "keepalives": 1,
        "keepalives_idle": patience,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": patience * 1000,
    }


def _bound(wrapper: Any, patience: int) -> None:
    """Let its connections give up on a server that is there, but does not answer.

    The driver has no option for that, and a timeout of the server would hang with it.
    """
    connect = wrapper.get_new_connection

    def get_new_connection(parameters: dict[str, Any]) -> Any:
        connection = connect(parameters)
        if not hasattr(connection, "wait"):
            return connection  # psycopg 2 waits in its own way
        wait = connection.wait

        def wait_patiently(answer: Conversation, *args: Any, **kwargs: Any) -> Any:
            return wait(_within(patience, answer, wrapper.Database), *args, **kwargs)

        connection.wait = wait_patiently
        return connection

    wrapper.get_new_connection = get_new_connection


def _within(seconds: int, answer: Conversation, driver: Any) -> Conversation:
    """Go on for as long as the server talks, or for so long if it does not."""
    ends = time.monotonic() + seconds
    try:
        wanted = next(answer)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > ends:
                raise driver.OperationalError(f"no answer within {seconds} s")
            wanted = answer.send(ready)
    except StopIteration as end:
        return end.value


def _for_mysql(options: dict[str, Any], patience: int) -> dict[str, Any]:
    timeouts: dict[str, Any] = {
        "connect_timeout": min(int(options.get("connect_timeout") or 5), 5),
        "read_timeout": patience,
        "write_timeout": patience,
    }
    if not options.get("init_command"):
        # The server would wait for ten times as long, holding what it has locked.
        timeouts["init_command"] = "SET SESSION innodb_lock_wait_timeout = 5"
    return timeouts


@contextmanager
def briefly(alias: str, *, seconds: int) -> Iterator[None]:
    """A transaction in which no statement takes longer than that."""
    with transaction.atomic(using=alias):
        if connections[alias].vendor == "postgresql":
            with connections[alias].cursor() as cursor:
                # LOCAL: nothing may stay behind in a session that a pooler shares.
                cursor.execute(f"SET LOCAL statement_timeout = {seconds * 1000:d}")
        yield


def close_all() -> None:
    """Close every connection and pool of this process, as must be before a fork.

    A child that closes a connection it was born with ends its parent's session, and a
    pool does not survive the loss of its threads.
    """
    for connection in connections.all(initialized_only=True):
        connection.close()
        pools = getattr(type(connection), "_connection_pools", {})
        for alias in list(pools):
            pools.pop(alias).close()


def prepare_for_task() -> None:
    """Do for a task what Django does for a request."""
    connection: Any
    for connection in connected():
        connection.queries_log.clear()
        if connection.connection is not None and _is_quiet(connection):
            # Django asks the server when the connection is used, and only then.
            connection.health_check_enabled = True
            connection.health_check_done = False


def clean_up_after_task() -> None:
    """Close connections that broke or have grown old; keep the others."""
    connection: Any
    for connection in connected():
        connection.rq_last_used = time.monotonic()
        if connection.connection is None or connection.in_atomic_block:
            continue
        # After any error: a server that has become read-only answers a health check.
        if connection.errors_occurred or _is_old(connection):
            connection.close()


def _is_quiet(connection: BaseDatabaseWrapper) -> bool:
    last_used = getattr(connection, "rq_last_used", 0.0)
    return bool(time.monotonic() - last_used > QUIET)


def _is_old(connection: BaseDatabaseWrapper) -> bool:
    if connection.settings_dict["OPTIONS"].get("pool"):
        return True  # to be given back; the pool keeps it open
    if connection.close_at is None:
        return False
    grace = 0.0 if connection.settings_dict["CONN_MAX_AGE"] else LEAST_AGE
    return bool(time.monotonic() >= connection.close_at + grace)
