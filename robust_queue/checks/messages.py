"""What the checks say: cause, cure, and a link to the page that says more."""

from collections.abc import Mapping, Sequence

from django.core import checks
from django.core.checks import CheckMessage
from django.db import connections

from robust_queue.exceptions import ConfigurationError
from robust_queue.rules import UnknownOptionError

DOCS = "https://robust-queue.readthedocs.io/en/latest/reference/checks.html"


def app_missing(alias: str) -> CheckMessage:
    return _error(
        "E001",
        f"TASKS[{alias!r}] uses Robust Queue, but its app is not installed.",
        "Add 'robust_queue' to INSTALLED_APPS, then run migrate.",
    )


def misconfigured(problem: ConfigurationError) -> CheckMessage:
    number = "E002" if isinstance(problem, UnknownOptionError) else "E003"
    return _error(number, f"{problem.path} {problem.problem}", problem.cure)


def queue_nameless(alias: str, name: object) -> CheckMessage:
    path = f"TASKS[{alias!r}]['QUEUES']"
    return _error("E003", f"{path} contains {name!r}.", "Queues are named with text.")


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


def key_declared_twice(key: str, places: Sequence[str]) -> CheckMessage:
    return _error(
        "E007",
        f"The recurring tasks of {' and '.join(places)} have the same key, {key!r}.",
        "Give each of them a key of its own: only one would ever run.",
    )


def handler_missing(path: str, error: Exception) -> CheckMessage:
    return _error(
        "E008",
        f"{path} leads nowhere: {error}",
        "Write the dotted path of a function that takes an exception.",
    )


def redactor_missing(path: str, error: Exception) -> CheckMessage:
    return _error(
        "E011",
        f"{path} leads nowhere: {error}",
        "Write the dotted path of a function that takes the path of a task, args and"
        " kwargs, and returns the latter two.",
    )


def partitions_unknown(path: str, error: Exception) -> CheckMessage:
    return _error(
        "E009",
        f"{path}['partition_by'] leads nowhere: {error}",
        "Write the name of a parameter, or the dotted path of a function that takes"
        " the task, its args and its kwargs.",
    )


def cannot_recur(path: str, error: Exception) -> CheckMessage:
    return _error(
        "E010",
        f"{path} makes no sense: {type(error).__name__}: {error}",
        "Until that is mended, it is left out by every scheduler.",
    )


def never_taken(path: str, queue: str) -> CheckMessage:
    return _error(
        "E012",
        f"Task {path} is declared in queue {queue!r}, which belongs to external tasks:"
        " the workers of this project never take jobs from there.",
        "Give the task another queue_name, or the external tasks a queue of their own.",
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
        f" {threads}, or take fewer threads.",
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
        f"Jobs are stored in {', '.join(map(repr, holders))}, but Job.objects"
        f" looks for them in {looked_at!r}.",
        "Add 'robust_queue.router.RobustQueueRouter' to DATABASE_ROUTERS.",
    )


def isolated_too_much(alias: str, level: object) -> CheckMessage:
    return _warning(
        "W006",
        f"Database {alias!r} holds a queue, which is made for READ COMMITTED, but its"
        f" isolation level is {level or 'that of the server'}: workers would wait for"
        " each other, or read what is not committed, and unique tasks might be enqueued"
        " twice.",
        f"Leave DATABASES[{alias!r}]['OPTIONS']['isolation_level'] out, or set it to"
        " 'read committed'.",
    )


def more_processes_than_cores(path: str, processes: int, cores: int) -> CheckMessage:
    return _warning(
        "W007",
        f"{path} asks for {processes} worker processes, but this host has"
        f" {cores} core{'' if cores == 1 else 's'} for them: they would wait for each"
        " other.",
        f"Run {cores} to {2 * cores}, and give tasks that wait for something else"
        " threads or coroutines; silence this check if the workers run on another"
        " host.",
    )


def too_many_threads(path: str, threads: int) -> CheckMessage:
    return _warning(
        "W008",
        f"{path} asks for {threads} threads in one process, where only one at a time"
        " runs Python code.",
        "Spread them over several processes, or write tasks that mostly wait as"
        " coroutines.",
    )


def too_few_connections(alias: str, needed: int, allowed: int) -> CheckMessage:
    return _warning(
        "W009",
        f"One supervisor and its processes need up to {needed} connections to database"
        f" {alias!r}, whose server allows {allowed} in all.",
        "Run fewer threads or processes, or raise max_connections of the server.",
    )


def limits_disagree(group: str, limits: Mapping[str, int]) -> CheckMessage:
    told = ", ".join(f"{path} says {limit}" for path, limit in limits.items())
    return _warning(
        "W010",
        f"Tasks of the concurrency group {group!r} disagree about its limit: {told}."
        " Whoever needs a slot last has its way.",
        "Give all of them the same limit, or groups of their own.",
    )


def external_queue_named(path: str, queue: str) -> CheckMessage:
    return _warning(
        "W011",
        f"{path} names the queue {queue!r}, which belongs to external tasks: this"
        " worker never takes jobs from there.",
        "Take the queue out. Workers outside serve it, over the HTTP API.",
    )


def _error(number: str, cause: str, cure: str) -> CheckMessage:
    return checks.Error(cause, hint=_hint(number, cure), id=f"robust_queue.{number}")


def _warning(number: str, cause: str, cure: str) -> CheckMessage:
    return checks.Warning(cause, hint=_hint(number, cure), id=f"robust_queue.{number}")


def _hint(number: str, cure: str) -> str:
    return f"{cure} See {DOCS}#robust-queue-{number.lower()}"
