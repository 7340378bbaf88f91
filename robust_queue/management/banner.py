"""The banner: what a supervisor is about to do, and what looks odd about it."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from django.db import Error, connections
from django.utils import timezone

import robust_queue
from robust_queue import registry
from robust_queue.aliases import backends_of
from robust_queue.configuration import (
    ConfigurationOptions,
    WorkerConfiguration,
    current,
)
from robust_queue.models import Pause
from robust_queue.models.queues import in_force
from robust_queue.processes.listener import can_listen
from robust_queue.recurrence import Recurrence
from robust_queue.rules import PriorityOrder
from robust_queue.stores import store_for

_ORDERS = {
    PriorityOrder.SMALLEST_FIRST: "the smallest number first",
    PriorityOrder.LARGEST_FIRST: "the largest number first",
}


def banner(
    database: str,
    *,
    tasks: Sequence[str],
    recurrences: Sequence[Recurrence] | None,
    reloads: bool = False,
) -> Iterator[str]:
    """Version, database, processes, queues, tasks, and how to stop, line by line."""
    options = current()
    yield f"Robust Queue {robust_queue.__version__}"
    for title, text in _facts(database, options, tasks, recurrences):
        yield f"  {title:<12}{text}"
    if reloads:
        yield f"  {'reload':<12}when code changes, once running tasks have finished"


def _facts(
    database: str,
    options: ConfigurationOptions,
    tasks: Sequence[str],
    recurrences: Sequence[Recurrence] | None,
) -> Iterator[tuple[str, str]]:
    aliases = [each.alias for each in backends_of(database)]
    yield (
        "backend",
        f"{', '.join(aliases)} in database {database!r} ({_server(database)})",
    )
    for worker in options.effective_workers:
        yield "worker", _worker(worker)
    for dispatcher in options.effective_dispatchers:
        pause = _short(dispatcher.polling_interval)
        yield "dispatcher", f"every {pause}, up to {dispatcher.batch_size} jobs at once"
    if options.effective_workers:
        yield "wake-up", _wake_up(database, options)
    yield "scheduler", _scheduler(recurrences)
    yield "priorities", ", ".join(sorted(set(_orders(database))))
    yield "tasks", f"{len(tasks)} found"
    timeout = _short(options.shutdown_timeout)
    yield "to stop", f"Ctrl-C or TERM: running tasks have {timeout} to finish"
    yield "", "Ctrl-C again or QUIT: at once; what runs goes back to the queue"


def advice(database: str, workers: Sequence[WorkerConfiguration]) -> Iterator[str]:
    """What an operator would wonder about later.

    Told by names alone: to count a backlog would take longer than to start.
    """
    try:
        paused = _paused(database)
        waiting = store_for(database).queue_names()
    except Error:
        return  # the supervisor will say so, and wait
    for name in paused:
        yield f"Queue {name!r} is paused: manage.py robust_queue resume {name}"
    outside = registry.external_queues()
    for name in waiting:
        if name in outside:
            yield f"Queue {name!r} has ready jobs, which wait for workers outside."
        # A supervisor without workers leaves all of them to others.
        elif workers and not any(each.serves(name) for each in workers):
            yield (
                f"Queue {name!r} has ready jobs, and no worker of this supervisor "
                "serves it."
            )


def _paused(database: str) -> list[str]:
    pauses = Pause.objects.using(database).filter(in_force(timezone.now()))
    return sorted(pauses.values_list("queue_name", flat=True))


def _worker(worker: WorkerConfiguration) -> str:
    processes = f"{worker.processes} process" + ("es" if worker.processes > 1 else "")
    threads = f"{worker.threads} thread" + ("s" if worker.threads > 1 else "")
    coroutines = f" and {worker.coroutines} coroutines" if worker.coroutines else ""
    queues = ", ".join(worker.patterns)
    return f"{processes} of {threads}{coroutines}, queues {queues}"


def _wake_up(database: str, options: ConfigurationOptions) -> str:
    if can_listen(database):
        return "by notifications where they arrive, else by polling"
    workers = options.effective_workers
    pauses = sorted({_short(each.polling_interval) for each in workers})
    return f"by polling every {', '.join(pauses)}"


def _scheduler(recurrences: Sequence[Recurrence] | None) -> str:
    if recurrences is None:
        return "none, recurring tasks are left to others"
    keys = ", ".join(each.key for each in recurrences[:5])
    more = f" and {len(recurrences) - 5} more" if len(recurrences) > 5 else ""  # noqa: PLR2004
    return f"{keys}{more}" if recurrences else "none, until a task is made to recur"


def _orders(database: str) -> Iterator[str]:
    for backend in backends_of(database):
        yield _ORDERS[backend.queue_options.priority_order]


def _server(database: str) -> str:
    connection = connections[database]
    try:
        # MariaDB has to be asked even for its name.
        name, version = connection.display_name, connection.get_database_version()
    except Error:
        return f"{connection.vendor}, out of reach"
    return f"{name} {'.'.join(map(str, version))}"


def _short(duration: timedelta) -> str:
    return f"{duration.total_seconds():g} s"
