"""System checks: a misconfiguration is told by ``manage.py check``, not at night.

Ids are permanent, and so are their anchors in the documentation.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.core import checks
from django.core.checks import CheckMessage
from django.core.checks.registry import registry
from django.db import connections, router
from django.utils.module_loading import import_string

from . import configuration
from .compat import belongs_to_backport, task_backends
from .exceptions import ConfigurationError
from .rules import UnknownOptionError

if TYPE_CHECKING:
    from .backend import RobustQueueBackend

DOCS = "https://robust-queue.readthedocs.io/en/latest/reference/checks.html"

NAMING_DATABASES = ("database", "transaction_databases")

# A worker polls and sends heartbeats beside the threads that run tasks.
CONNECTIONS_BESIDE_THREADS = 2

# What psycopg_pool opens unless told; its max_size follows its min_size.
DEFAULT_POOL_SIZE = 4

# The first release of each series that both stores (MDEV-29959) and compares
# (MDEV-31926) UUIDs of version 7 in order; 10.7 to 10.9 ended before.
MARIADB_IN_ORDER = {(10, 10): 7, (10, 11): 6, (11, 0): 4, (11, 1): 3, (11, 2): 2}


def register_checks() -> None:
    """Tell Django about the checks; called when the apps are ready."""
    checks.register(check_configuration)
    checks.register(check_databases, checks.Tags.database)


def check_backend(backend: "RobustQueueBackend") -> list[CheckMessage]:
    """Judge one alias of ``TASKS``, even if the app is not installed."""
    # Django's own framework holds a twin with the same settings and asks that one.
    if belongs_to_backport(backend):
        return []
    installed = apps.is_installed("robust_queue")
    messages = [] if installed else [app_missing(backend.alias)]
    messages += _judge_options(backend)
    if not configuration.problems():
        messages += _judge_queues(backend.alias, backend.queues)
    return messages


def check_configuration(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Judge the setting ``ROBUST_QUEUE`` and the databases that hold queues."""
    problems = configuration.problems()
    messages = list(map(misconfigured, problems)) or list(_judge_setting())
    if not _framework_asks_backends():
        messages += chain.from_iterable(map(check_backend, _backends()))
    return [*messages, *_judge_databases(_queue_databases())]


def check_databases(
    app_configs: Any = None, databases: Iterable[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Ask the servers that hold queues, where Django was told to ask servers."""
    asked = set(databases or ()).intersection(_queue_databases())
    return list(chain.from_iterable(map(_judge_server, sorted(asked))))


def _judge_options(backend: "RobustQueueBackend") -> Iterator[CheckMessage]:
    problems = _option_problems(backend)
    yield from map(misconfigured, problems)
    if not problems:
        path = configuration.options_path(backend.alias)
        for name in map(str.upper, NAMING_DATABASES):
            yield from _judge_aliases(f"{path}[{name!r}]", backend.options.get(name))


def _judge_setting() -> Iterator[CheckMessage]:
    options = configuration.current()
    for name in NAMING_DATABASES:
        yield from _judge_aliases(configuration.path_of(name), getattr(options, name))
    for index, worker in enumerate(options.effective_workers):
        path = f"{configuration.path_of('workers')}[{index}]"
        yield from (pattern_ignored(path, each) for each in worker.ignored_patterns)


def _judge_aliases(path: str, aliases: Any) -> Iterator[CheckMessage]:
    for alias in [aliases] if isinstance(aliases, str) else aliases or ():
        if alias not in connections:
            yield database_missing(path, alias)


def _judge_queues(alias: str, queues: set[str]) -> Iterator[CheckMessage]:
    workers = configuration.current().effective_workers
    served = {name for name in queues if any(each.serves(name) for each in workers)}
    # A host without workers only enqueues.
    if workers and queues - served:
        yield queues_unserved(alias, sorted(queues - served))


def _judge_databases(aliases: list[str]) -> Iterator[CheckMessage]:
    for alias in aliases:
        options = connections[alias].settings_dict.get("OPTIONS") or {}
        if connections[alias].vendor == "sqlite":
            yield from _judge_transactions(alias, options.get("transaction_mode"))
        if connections[alias].vendor == "postgresql":
            yield from _judge_pool(alias, options.get("pool"))
    if aliases:
        yield from _judge_router(aliases)


def _judge_transactions(alias: str, mode: str | None) -> Iterator[CheckMessage]:
    if mode is None or mode.upper() == "DEFERRED":
        yield transactions_deferred(alias)


def _judge_pool(alias: str, pool: Any) -> Iterator[CheckMessage]:
    options = pool if isinstance(pool, Mapping) else {}
    size = options.get("max_size") or options.get("min_size", DEFAULT_POOL_SIZE)
    workers = configuration.current().effective_workers
    threads = max((each.threads for each in workers), default=0)
    if pool and threads and size < threads + CONNECTIONS_BESIDE_THREADS:
        yield pool_too_small(alias, size, threads)


def _judge_router(aliases: list[str]) -> Iterator[CheckMessage]:
    from .models import Job  # noqa: PLC0415 (models need the app registry)

    looked_at = router.db_for_read(Job)
    if looked_at not in aliases:
        yield router_elsewhere(aliases, looked_at)


def _judge_server(alias: str) -> Iterator[CheckMessage]:
    connection: Any = connections[alias]
    if connection.vendor != "mysql":
        return
    version = connection.mysql_version
    if connection.mysql_is_mariadb and scrambles_uuids(version):
        yield uuids_scrambled(alias, version)
    if replicates_statements(_binlog(connection)):
        yield statements_replicated(alias)


def scrambles_uuids(mariadb: tuple[int, ...]) -> bool:
    """Tell whether this MariaDB sorts a UUID by something else than its time."""
    series, release = mariadb[:2], mariadb[2]
    sound_since = MARIADB_IN_ORDER.get((series[0], series[1]), math.inf)
    return (10, 7) <= series < (11, 3) and release < sound_since


def replicates_statements(binlog: Mapping[str, str]) -> bool:
    """Tell whether a server with these variables logs statements, not rows."""
    return binlog.get("log_bin") == "ON" and binlog.get("binlog_format") == "STATEMENT"


def _binlog(connection: Any) -> dict[str, str]:
    wanted = ["log_bin", "binlog_format"]
    with connection.cursor() as cursor:
        cursor.execute("SHOW VARIABLES WHERE Variable_name IN (%s, %s)", wanted)
        return dict(cursor.fetchall())


def _framework_asks_backends() -> bool:
    # django.tasks always does; the backport only where it is an installed app.
    asker = f"{type(task_backends).__module__}.checks"
    return any(check.__module__ == asker for check in registry.get_checks())


def _backends() -> "list[RobustQueueBackend]":
    # By its name: the backend imports this module, and imports point one way only.
    kind = import_string("robust_queue.backend.RobustQueueBackend")
    return [each for each in task_backends.all() if isinstance(each, kind)]


def _queue_databases() -> list[str]:
    backends = _backends() if apps.is_installed("robust_queue") else []
    # A router may ask every alias where it lives: one bad alias spoils them all.
    if not all(map(_is_readable, backends)):
        return []
    found = dict.fromkeys(backend.database for backend in backends)
    return [alias for alias in found if alias in connections]


def _is_readable(backend: "RobustQueueBackend") -> bool:
    return not _option_problems(backend) and not configuration.problems()


def _option_problems(backend: "RobustQueueBackend") -> list[ConfigurationError]:
    return configuration.backend_option_problems(backend.alias, backend.options)


def app_missing(alias: str) -> CheckMessage:
    return _error(
        "E001",
        f"TASKS[{alias!r}] uses Robust Queue, but its app is not installed.",
        "Add 'robust_queue' to INSTALLED_APPS, then run migrate.",
    )


def misconfigured(problem: ConfigurationError) -> CheckMessage:
    number = "E002" if isinstance(problem, UnknownOptionError) else "E003"
    return _error(number, f"{problem.path} {problem.problem}", problem.cure)


def database_missing(path: str, alias: str) -> CheckMessage:
    return _error(
        "E004",
        f"{path} names the database {alias!r}, which DATABASES does not have.",
        f"Choose one of {', '.join(map(repr, connections))}, or add it to DATABASES.",
    )


def uuids_scrambled(alias: str, version: tuple[int, ...]) -> CheckMessage:
    return _error(
        "E005",
        f"MariaDB {'.'.join(map(str, version))} of database {alias!r} does not sort"
        " UUIDs by time, so the first job in would not be the first out.",
        "Upgrade to MariaDB 10.11.6, 11.4 or later.",
    )


def statements_replicated(alias: str) -> CheckMessage:
    return _error(
        "E006",
        f"The server of database {alias!r} logs statements instead of rows, so it"
        " refuses every write at READ COMMITTED, the isolation level of the queue.",
        "Set binlog_format to MIXED or ROW.",
    )


def transactions_deferred(alias: str) -> CheckMessage:
    return _warning(
        "W001",
        f"SQLite database {alias!r} holds a queue, but its transactions begin without"
        " a lock: one that reads and then writes fails at once if another has written.",
        f"Set DATABASES[{alias!r}]['OPTIONS']['transaction_mode'] to 'IMMEDIATE'.",
    )


def pool_too_small(alias: str, size: int, threads: int) -> CheckMessage:
    return _warning(
        "W002",
        f"Database {alias!r} pools {size} connections, but a worker has {threads}"
        " threads: they wait for each other.",
        f"Set max_size of DATABASES[{alias!r}]['OPTIONS']['pool'] to at least"
        f" {threads + CONNECTIONS_BESIDE_THREADS}, or take fewer threads.",
    )


def pattern_ignored(path: str, pattern: str) -> CheckMessage:
    return _warning(
        "W003",
        f"{path} asks for the queues {pattern!r}, which are never served.",
        "A '*' may stand alone or at the end of a name, as in 'mail*'.",
    )


def queues_unserved(alias: str, queues: list[str]) -> CheckMessage:
    return _warning(
        "W004",
        f"TASKS[{alias!r}] accepts jobs that no worker takes, in the queues"
        f" {', '.join(map(repr, queues))}.",
        "Add them to the queues of a worker; silence this check if another host has"
        " such a worker.",
    )


def router_elsewhere(holders: list[str], looked_at: str) -> CheckMessage:
    return _warning(
        "W005",
        f"Jobs are stored in {', '.join(map(repr, holders))}, but Job.objects and the"
        f" admin look for them in {looked_at!r}.",
        "Add 'robust_queue.router.RobustQueueRouter' to DATABASE_ROUTERS.",
    )


def _error(number: str, cause: str, cure: str) -> CheckMessage:
    return checks.Error(cause, hint=_hint(number, cure), id=f"robust_queue.{number}")


def _warning(number: str, cause: str, cure: str) -> CheckMessage:
    return checks.Warning(cause, hint=_hint(number, cure), id=f"robust_queue.{number}")


def _hint(number: str, cure: str) -> str:
    return f"{cure} See {DOCS}#robust-queue-{number.lower()}"
