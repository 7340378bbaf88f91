"""Who is alive, who serves what, and what waits in vain."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from robust_queue.configuration import current
from robust_queue.lifecycle.queues import QueueStatus, queues
from robust_queue.lifecycle.workers import WorkerStatus, status_of
from robust_queue.models import FailedExecution, Process, ScheduledExecution
from robust_queue.models.processes import EXTERNAL, WORKER, WORKING

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
    servers = [status_of(each, 0) for each in alive if each.kind in WORKING]
    yield from _unserved(statuses, servers)
    yield from _left_by_the_quiet(statuses, servers)
    yield from _paused(statuses)
    yield from _overdue(database)
    yield from _failed(database)


def _absent(alive: Sequence[Process]) -> Iterator[Finding]:
    kinds = {process.kind for process in alive}
    if EXTERNAL in kinds:
        kinds.add(WORKER)  # all work may be done outside
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
    statuses: Sequence[QueueStatus], workers: Sequence[WorkerStatus]
) -> Iterator[Finding]:
    rows = tuple(
        _waiting(status)
        for status in statuses
        if not status.is_paused and not any(w.serves(status.name) for w in workers)
    )
    if rows and workers:  # that there are none at all was said already
        text = "Queues have ready jobs, but no live worker serves them."
        yield Finding("problem", text, rows)


def _left_by_the_quiet(
    statuses: Sequence[QueueStatus], workers: Sequence[WorkerStatus]
) -> Iterator[Finding]:
    serving = {s: [w for w in workers if w.serves(s.name)] for s in statuses}
    rows = tuple(
        _waiting(status)
        for status, found in serving.items()
        if found and not status.is_paused and all(each.is_quiet for each in found)
    )
    if rows:
        text = "Queues have ready jobs, and all workers that serve them are quiet."
        yield Finding("warning", text, rows)


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
