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

from robust_queue import aliases, configuration, recurrence, reports
from robust_queue.compat import belongs_to_backport, task_backends
from robust_queue.exceptions import ConfigurationError
from robust_queue.flow import partitions
from robust_queue.flow.queues import QueueConfiguration
from robust_queue.redaction import hook_at

from . import messages, sizing
from .external import check_external_tasks, to_be_served
from .limits import check_limits

if TYPE_CHECKING:
    from robust_queue.backend import RobustQueueBackend

READ_COMMITTED = "read committed"  # Django's own default on MySQL

NAMING_DATABASES = ("database", "transaction_databases")

# What psycopg_pool opens unless told; its max_size follows its min_size.
DEFAULT_POOL_SIZE = 4

# The first release of each series that both stores (MDEV-29959) and compares
# (MDEV-31926) UUIDs of version 7 in order; 10.7 to 10.9 ended before.
MARIADB_IN_ORDER = {(10, 10): 7, (10, 11): 6, (11, 0): 4, (11, 1): 3, (11, 2): 2}


def register_checks() -> None:
    """Tell Django about the checks; called when the apps are ready."""
    checks.register(check_configuration)
    checks.register(check_recurring_tasks)
    checks.register(check_limits)
    checks.register(check_external_tasks)
    checks.register(check_databases, checks.Tags.database)


def check_backend(backend: "RobustQueueBackend") -> list[CheckMessage]:
    """Judge one alias of ``TASKS``, even if the app is not installed."""
    # Django's own framework holds a twin with the same settings and asks that one.
    if belongs_to_backport(backend):
        return []
    installed = apps.is_installed("robust_queue")
    found = [] if installed else [messages.app_missing(backend.alias)]
    found += _judge_options(backend)
    if not configuration.problems():
        found += _judge_queues(backend.alias, backend.queues)
    return found


def check_configuration(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Judge the setting ``ROBUST_QUEUE`` and the databases that hold queues."""
    problems = configuration.problems()
    found = list(map(messages.misconfigured, problems)) or list(_judge_setting())
    if not _framework_asks_backends():
        found += chain.from_iterable(map(check_backend, aliases.backends()))
    return [*found, *_judge_databases(_queue_databases())]


def check_recurring_tasks(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Judge what is declared with ``@recurring``, and what stands in the settings."""
    if configuration.problems():
        return []  # it cannot be told where to look
    places: dict[str, list[str]] = {}
    for each in recurrence.declared():
        places.setdefault(each.key, []).append(each.place)
    twice = [
        messages.key_declared_twice(key, found)
        for key, found in places.items()
        if len(found) > 1
    ]
    return [*twice, *(messages.cannot_recur(*each) for each in recurrence.troubles())]


def check_databases(
    app_configs: Any = None, databases: Iterable[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Ask the servers that hold queues, where Django was told to ask servers."""
    asked = set(databases or ()).intersection(_queue_databases())
    return list(chain.from_iterable(map(_judge_server, sorted(asked))))


def _judge_options(backend: "RobustQueueBackend") -> Iterator[CheckMessage]:
    problems = _option_problems(backend)
    yield from map(messages.misconfigured, problems)
    if not problems:
        path = configuration.options_path(backend.alias)
        for name in map(str.upper, NAMING_DATABASES):
            yield from _judge_aliases(f"{path}[{name!r}]", backend.options.get(name))
        if "QUEUES" in backend.options:
            queues = backend.queue_options.queues
            yield from _judge_partitions(f"{path}['QUEUES']", queues)


def _judge_setting() -> Iterator[CheckMessage]:
    options = configuration.current()
    yield from _judge_handler()
    yield from _judge_redactor(options.redact_with)
    yield from _judge_partitions(configuration.path_of("queues"), options.queues)
    for name in NAMING_DATABASES:
        yield from _judge_aliases(configuration.path_of(name), getattr(options, name))
    for index, worker in enumerate(options.effective_workers):
        path = f"{configuration.path_of('workers')}[{index}]"
        yield from (
            messages.pattern_ignored(path, each) for each in worker.ignored_patterns
        )
    yield from sizing.judge_host()


def _judge_handler() -> Iterator[CheckMessage]:
    try:
        reports.handler()
    except Exception as error:
        yield messages.handler_missing(configuration.path_of("on_thread_error"), error)


def _judge_redactor(said: Any) -> Iterator[CheckMessage]:
    try:
        if isinstance(said, str):
            hook_at(said)
    except Exception as error:
        yield messages.redactor_missing(configuration.path_of("redact_with"), error)


def _judge_partitions(
    path: str, queues: Mapping[str, QueueConfiguration]
) -> Iterator[CheckMessage]:
    for name, queue in queues.items():
        by = queue.partition_by
        # Without a dot it is the name of a parameter, which some tasks may lack.
        if isinstance(by, str) and "." in by:
            try:
                partitions.function_at(by)
            except Exception as error:
                yield messages.partitions_unknown(f"{path}[{name!r}]", error)


def _judge_aliases(path: str, aliases: Any) -> Iterator[CheckMessage]:
    for alias in [aliases] if isinstance(aliases, str) else aliases or ():
        if alias not in connections:
            yield messages.database_missing(path, alias)


def _judge_queues(alias: str, queues: set[str]) -> Iterator[CheckMessage]:
    nameless = [name for name in queues if not isinstance(name, str)]
    yield from (messages.queue_nameless(alias, name) for name in nameless)
    workers = () if nameless else configuration.current().effective_workers
    served = {name for name in queues if any(each.serves(name) for each in workers)}
    # A host without workers only enqueues.
    unserved = to_be_served(queues - served) if workers else []
    if unserved:
        yield messages.queues_unserved(alias, unserved)


def _judge_databases(aliases: list[str]) -> Iterator[CheckMessage]:
    for alias in aliases:
        options = connections[alias].settings_dict.get("OPTIONS") or {}
        if connections[alias].vendor == "sqlite":
            yield from _judge_transactions(alias, options.get("transaction_mode"))
        if connections[alias].vendor == "postgresql":
            yield from _judge_pool(alias, options.get("pool"))
        if connections[alias].vendor == "mysql":
            yield from _judge_isolation(alias, options)
    if aliases:
        yield from _judge_router(aliases)


def _judge_transactions(alias: str, mode: str | None) -> Iterator[CheckMessage]:
    if mode is None or str(mode).upper() == "DEFERRED":
        yield messages.transactions_deferred(alias)


def _judge_isolation(alias: str, options: Mapping[str, Any]) -> Iterator[CheckMessage]:
    level = options.get("isolation_level", READ_COMMITTED)
    if str(level).lower() != READ_COMMITTED:
        yield messages.isolated_too_much(alias, level)


def _judge_pool(alias: str, pool: Any) -> Iterator[CheckMessage]:
    options = pool if isinstance(pool, Mapping) else {}
    size = options.get("max_size") or options.get("min_size", DEFAULT_POOL_SIZE)
    workers = configuration.current().effective_workers
    threads = max((each.threads for each in workers), default=0)
    if not isinstance(size, int):
        return  # psycopg_pool itself will say what it thinks of it
    # Only tasks take from it: a worker polls and beats on connections of its own.
    if pool and size < threads:
        yield messages.pool_too_small(alias, size, threads)


def _judge_router(aliases: list[str]) -> Iterator[CheckMessage]:
    from robust_queue.models import Job  # noqa: PLC0415 (models need the app registry)

    looked_at = router.db_for_read(Job)
    if looked_at not in aliases:
        yield messages.router_elsewhere(aliases, looked_at)


def _judge_server(alias: str) -> Iterator[CheckMessage]:
    if connections[alias].vendor == "mysql":
        yield from _judge_mysql(connections[alias], alias)
    yield from sizing.judge_connections(alias)


def _judge_mysql(connection: Any, alias: str) -> Iterator[CheckMessage]:
    version = connection.mysql_version
    if connection.mysql_is_mariadb and scrambles_uuids(version):
        yield messages.uuids_scrambled(alias, version)
    if replicates_statements(_binlog(connection)):
        yield messages.statements_replicated(alias)


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


def _queue_databases() -> list[str]:
    backends = aliases.backends() if apps.is_installed("robust_queue") else []
    # A router may ask every alias where it lives: one bad alias spoils them all.
    if not all(map(_is_readable, backends)):
        return []
    found = dict.fromkeys(backend.database for backend in backends)
    return [alias for alias in found if alias in connections]


def _is_readable(backend: "RobustQueueBackend") -> bool:
    return not _option_problems(backend) and not configuration.problems()


def _option_problems(backend: "RobustQueueBackend") -> list[ConfigurationError]:
    return configuration.backend_option_problems(backend.alias, backend.options)
