"""A job that is not running ──▶ the reasons for it, in plain words.

Only looks. What it says is true of one moment, and of what is committed. The first
reason is the one to see to first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from robust_queue import registry
from robust_queue.configuration import current
from robust_queue.flow.keys import split
from robust_queue.models import (
    Cancellation,
    ClaimedExecution,
    Job,
    Pause,
    Process,
    ReadyExecution,
    Semaphore,
    TaskPause,
)
from robust_queue.models.queues import in_force

from .moments import by_the_clock
from .selection import standing
from .workers import WorkerStatus, workers

# More jobs that go before it are not counted.
MOST_AHEAD = 10_000
HOLDERS_SHOWN = 5
HOLDERS_LOOKED_AT = 100

Subject: TypeAlias = Literal["job", "process", "queue", "task", "key", ""]


@dataclass(frozen=True, slots=True)
class Reason:
    """A sentence, and what it is about, so that people can go there."""

    text: str
    subject: Subject = ""
    name: str = ""


def why_not_running(database: str, job: Job) -> list[Reason]:
    """Why this job does not run just now, or what it does instead.

    Its state must have been read with it, as ``Job.objects.with_state()`` does.
    """
    explain = _STATES.get(job.state, _lost)
    return [*explain(database, job), *_unknown_task(job)]


# ── Over ───────────────────────────────────────────────────────────────────────


def _finished(database: str, job: Job) -> Iterator[Reason]:
    at = job.finished_execution.finished_at
    yield Reason(_("It has succeeded, at %s.") % by_the_clock(at))


def _failed(database: str, job: Job) -> Iterator[Reason]:
    failure = job.failed_execution
    at = by_the_clock(failure.finished_at)
    kind = failure.get_kind_display()
    yield Reason(
        _("It has failed for good, at %(at)s (%(kind)s): %(error)s.")
        % {"at": at, "kind": kind, "error": failure.exception_class}
    )
    yield Reason(_("It runs again if somebody retries it."))


def _lost(database: str, job: Job) -> Iterator[Reason]:
    yield Reason(
        _("It stands nowhere: its row was lost. “doctor --deep” names such jobs.")
    )


# ── Waiting for its time ───────────────────────────────────────────────────────


def _scheduled(database: str, job: Job) -> Iterator[Reason]:
    row = job.scheduled_execution
    at, now = row.scheduled_at, timezone.now()
    if at > now:
        yield Reason(_("It is to run at %s, not before.") % by_the_clock(at))
    else:
        yield Reason(
            _("It was due at %s, and has not been made ready.") % by_the_clock(at)
        )
        yield from _without("Dispatcher", database)
    if row.attempts:
        count = row.attempts
        told = ngettext(
            "%d attempt was made before: it waits for the next one.",
            "%d attempts were made before: it waits for the next one.",
            count,
        )
        yield Reason(told % count)
    yield from _paused(database, job)


# ── Waiting for a slot ─────────────────────────────────────────────────────────


def _blocked(database: str, job: Job) -> Iterator[Reason]:
    for key in split(job.concurrency_key):
        yield from _key_taken(database, key)
    yield from _without("Dispatcher", database)


def _key_taken(database: str, key: str) -> Iterator[Reason]:
    semaphore = Semaphore.objects.using(database).filter(pk=key).first()
    if semaphore is None or semaphore.value > 0:
        told = _("There is a slot of “%s”: it will be made ready within seconds.")
        yield Reason(told % key, "key", key)
        return
    told = ngettext(
        "Only %(limit)d job of “%(key)s” may run at a time.",
        "Only %(limit)d jobs of “%(key)s” may run at a time.",
        semaphore.limit,
    )
    yield Reason(told % {"limit": semaphore.limit, "key": key}, "key", key)
    for holder, state in _holders(database, semaphore).items():
        told = _("Job %(id)s has a slot of it, and is %(state)s.")
        yield Reason(told % {"id": holder, "state": state}, "job", str(holder))


def _holders(database: str, semaphore: Semaphore) -> dict[UUID, str]:
    """Some of those that have a slot, and where they stand.

    Those that run are few, and are looked through. Of those that are ready the one that
    the key itself remembers is told: to look for the others would take long.
    """
    key = semaphore.key
    claims = ClaimedExecution.objects.using(database)
    claims = claims.filter(job__concurrency_key__contains=key)
    running = claims.values_list("pk", "job__concurrency_key")[:HOLDERS_LOOKED_AT]
    ids = [job_id for job_id, keys in running if key in split(keys)]
    if not ids and semaphore.holder_id:
        ids = [semaphore.holder_id]
    return standing(database, ids[:HOLDERS_SHOWN])


# ── Waiting for a worker ───────────────────────────────────────────────────────


def _ready(database: str, job: Job) -> Iterator[Reason]:
    yield from _paused(database, job)
    alive = workers(database)
    serving = [each for each in alive if each.serves(job.queue_name)]
    if not serving:
        yield _unserved(alive, job.queue_name)
        return
    quiet = [each for each in serving if each.is_quiet]
    if quiet:
        yield _quiet(quiet, job.queue_name, are_all=len(quiet) == len(serving))
    serving = [each for each in serving if not each.is_quiet]
    busy = [each for each in serving if each.is_busy]
    if serving and len(busy) == len(serving):
        told = ngettext(
            "%(count)d worker serves its queue, and has as many jobs as threads.",
            "%(count)d workers serve its queue, and have as many jobs as threads.",
            len(busy),
        )
        yield Reason(told % {"count": len(busy)}, "queue", job.queue_name)
    yield _ahead(database, job)


def _unserved(alive: list[WorkerStatus], queue: str) -> Reason:
    if not alive:
        return Reason(_("No worker is alive."))
    told = _("No worker that is alive serves the queue “%s”.")
    return Reason(told % queue, "queue", queue)


def _quiet(quiet: list[WorkerStatus], queue: str, *, are_all: bool) -> Reason:
    if are_all:
        told = _("The workers that serve its queue are quiet: they take nothing new.")
    else:
        told = ngettext(
            "%(count)d of the workers that serve its queue is quiet.",
            "%(count)d of the workers that serve its queue are quiet.",
            len(quiet),
        )
    return Reason(told % {"count": len(quiet)}, "queue", queue)


def _ahead(database: str, job: Job) -> Reason:
    row = job.ready_execution
    before = Q(priority__lt=row.priority) | Q(priority=row.priority, pk__lt=job.pk)
    rows = ReadyExecution.objects.using(database).filter(queue_name=job.queue_name)
    count = rows.filter(before).order_by()[:MOST_AHEAD].count()
    if not count:
        return Reason(_("It is the next of its queue."), "queue", job.queue_name)
    told = ngettext(
        "%(count)s job of its queue goes before it.",
        "%(count)s jobs of its queue go before it.",
        count,
    )
    shown = f"{count:,}" if count < MOST_AHEAD else _("%s or more") % f"{MOST_AHEAD:,}"
    return Reason(told % {"count": shown}, "queue", job.queue_name)


# ── At a worker ────────────────────────────────────────────────────────────────


def _claimed(database: str, job: Job) -> Iterator[Reason]:
    claim = job.claimed_execution
    process = Process.objects.using(database).filter(pk=claim.process_id)
    alive = process.heard_within(current().process_alive_threshold)
    name = process.values_list("name", flat=True).first() or str(claim.process_id)
    about: tuple[Subject, str] = ("process", str(claim.process_id))
    since = {"name": name, "at": by_the_clock(claim.created_at)}
    yield Reason(
        _("%(name)s has it since %(at)s: it runs, or is next.") % since, *about
    )
    if not alive.exists():
        told = _(
            "%s has not been heard of lately. If it is dead, a supervisor will give "
            "the job back, or fail it."
        )
        yield Reason(told % name, *about)
    if Cancellation.objects.using(database).filter(pk=job.pk).exists():
        yield Reason(_("It was asked to end."))


# ── Obstacles ──────────────────────────────────────────────────────────────────


def _paused(database: str, job: Job) -> Iterator[Reason]:
    force = in_force(timezone.now())
    for pause in Pause.objects.using(database).filter(force, pk=job.queue_name):
        told = _("Its queue, “%s”, is paused")
        yield _until(told % job.queue_name, pause.until, "queue", job.queue_name)
    for halt in TaskPause.objects.using(database).filter(force, pk=job.task_path):
        told = _("Its task, %s, is paused")
        yield _until(told % job.task_path, halt.until, "task", job.task_path)


def _until(told: str, end: datetime | None, subject: Subject, name: str) -> Reason:
    until = (
        _(" until %s.") % by_the_clock(end)
        if end
        else _(", until somebody resumes it.")
    )
    return Reason(told + until, subject, name)


def _without(kind: str, database: str) -> Iterator[Reason]:
    alive = Process.objects.using(database).filter(kind=kind)
    if not alive.heard_within(current().process_alive_threshold).exists():
        yield Reason(_("No %s is alive, who would see to it.") % kind.lower())


def _unknown_task(job: Job) -> Iterator[Reason]:
    if job.state not in _OVER and registry.find(job.task_path) is None:
        told = _("No task %s is declared in the code that is looking at it.")
        yield Reason(told % job.task_path, "task", job.task_path)


_OVER = ("finished", "failed")
_STATES: dict[str, Callable[[str, Job], Iterator[Reason]]] = {
    "finished": _finished,
    "failed": _failed,
    "scheduled": _scheduled,
    "blocked": _blocked,
    "ready": _ready,
    "claimed": _claimed,
}
