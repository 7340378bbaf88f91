"""Who is alive, who serves what, and what waits in vain."""

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from robust_queue.configuration import WorkerConfiguration, current
from robust_queue.exceptions import ConfigurationError
from robust_queue.lifecycle.queues import QueueStatus, queues
from robust_queue.models import FailedExecution, Process, ScheduledExecution

from .findings import Finding, named

# What a dispatcher that is alive would have seen to by now.
OVERDUE = timedelta(minutes=1)

MISSED = {
    "Supervisor": "No supervisor is alive: nobody would replace a worker that dies.",
    "Worker": "No worker is alive: nothing that is ready gets run.",
    "Dispatcher": "No dispatcher is alive: nothing that is scheduled becomes ready.",
}


def examine(database: str) -> Iterator[Finding]:
    """What an operator would look at first."""
    threshold = current().process_alive_threshold
    processes = Process.objects.using(database)
    alive = list(processes.heard_within(threshold))
    yield from _absent(alive)
    yield from _silent(processes.silent_for(threshold))
    statuses = [status for status in queues(database) if status.ready]
    yield from _unserved(statuses, alive)
    yield from _paused(statuses)
    yield from _overdue(database)
    yield from _failed(database)


def _absent(alive: Sequence[Process]) -> Iterator[Finding]:
    kinds = {process.kind for process in alive}
    if not current().effective_dispatchers:
        kinds.add("Dispatcher")  # nobody wants one
    yield from (
        Finding("problem", text) for kind, text in MISSED.items() if kind not in kinds
    )


def _silent(silent: QuerySet[Process]) -> Iterator[Finding]:
    rows = silent.order_by("name").values_list("name", "last_heartbeat_at")
    found = named((rows, lambda name, beat: f"{name}, last heard of at {beat}"))
    if found:
        threshold = current().process_alive_threshold
        text = f"Processes have been silent for more than {threshold}."
        yield Finding("warning", text, found)


def _unserved(
    statuses: Sequence[QueueStatus], alive: Sequence[Process]
) -> Iterator[Finding]:
    workers = [_worker(each) for each in alive if each.kind == "Worker"]
    rows = tuple(
        _waiting(status)
        for status in statuses
        if not status.is_paused and not any(w.serves(status.name) for w in workers)
    )
    if rows and workers:  # that there are none at all was said already
        text = "Queues have ready jobs, but no live worker serves them."
        yield Finding("problem", text, rows)


def _worker(process: Process) -> WorkerConfiguration:
    """What a worker told of itself; who tells nonsense is taken to serve everything."""
    try:
        return WorkerConfiguration(queues=json.loads(process.metadata)["queues"])
    except (ValueError, TypeError, KeyError, ConfigurationError):
        return WorkerConfiguration()


def _paused(statuses: Sequence[QueueStatus]) -> Iterator[Finding]:
    rows = tuple(
        f"{_waiting(status)}, paused at {status.paused_at}"
        for status in statuses
        if status.is_paused
    )
    if rows:
        yield Finding("warning", "Jobs wait in queues that are paused.", rows)


def _waiting(status: QueueStatus) -> str:
    return f"{status.name}: {status.ready:,} ready"


def _overdue(database: str) -> Iterator[Finding]:
    scheduled = ScheduledExecution.objects.using(database).order_by("scheduled_at")
    late = scheduled.filter(scheduled_at__lt=timezone.now() - OVERDUE)
    rows = late.values_list("pk", "scheduled_at")
    found = named((rows, lambda job_id, moment: f"job {job_id}, due at {moment}"))
    if found:
        text = (
            "Scheduled jobs are overdue by more than a minute: does a dispatcher run?"
        )
        yield Finding("problem", text, found)


def _failed(database: str) -> Iterator[Finding]:
    count = FailedExecution.objects.using(database).count()
    if count:
        jobs = "1 job has" if count == 1 else f"{count:,} jobs have"
        yield Finding("warning", f"{jobs} failed: retry or discard.")
