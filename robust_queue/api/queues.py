"""Queues: how deep they are, who listens, and whether they give out work."""

from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from robust_queue.compat import InvalidTask
from robust_queue.lifecycle.discard import clear_queue
from robust_queue.lifecycle.names import queue_name_problem
from robust_queue.lifecycle.pause import pause, resume
from robust_queue.lifecycle.queues import (
    QueueStatus,
    is_known,
    queue_in_full,
    queues_in_full,
)
from robust_queue.lifecycle.workers import WorkerStatus, servers

from . import deeds
from .access import Needs, audit, caller_in, database_of
from .deeds import LOOK
from .problems import invalid, not_found
from .wire import Moment, Request, Stamp

# What is cleared in one request; nobody waits longer for an answer.
MOST_CLEARED = 50_000

Waiting = Literal["scheduled", "blocked", "ready", "pending"]

router = Router(tags=["Queues"])


class Listener(Schema):
    """A live worker that serves a queue."""

    id: UUID
    name: str
    is_external: bool
    is_quiet: bool = Field(description="It takes nothing new for now.")


class QueueFacts(Schema):
    """A queue, and who listens to it."""

    name: str
    ready: int
    scheduled: int
    blocked: int
    running: int
    oldest_ready_at: Stamp | None
    latency: float = Field(description="Seconds for which the oldest has been ready.")
    is_paused: bool
    paused_at: Stamp | None
    paused_until: Stamp | None
    listeners: list[Listener]


class Pausing(Request):
    """For how long. Without an end, until somebody resumes it."""

    until: Moment | None = None


class Changed(Schema):
    """Whether anything is different now."""

    changed: bool = Field(description="`false`: it was so already.")


class Cleared(Schema):
    """How much was deleted."""

    deleted: int
    is_complete: bool = Field(description="`false`: there is more. Ask again.")


@router.get("", auth=Needs(LOOK), response=list[QueueFacts])
def list_queues(request: HttpRequest) -> list[dict[str, Any]]:
    """Queues with unfinished jobs, that are paused, or that the settings name."""
    database = database_of(request)
    alive = servers(database)
    return [_told(each, alive) for each in queues_in_full(database)]


@router.post("/{path:name}/pause", auth=Needs(deeds.PAUSE), response=Changed)
def pause_queue(
    request: HttpRequest, name: str, told: Pausing | None = None
) -> dict[str, Any]:
    """Give out no work of it. What is being done goes on."""
    database, until = database_of(request), told.until if told else None
    check_known(database, name)
    try:
        changed = pause(database, name, until=until)
    except (InvalidTask, ValueError, OverflowError) as refusal:
        detail = "A pause ends in the future, and before the calendar does."
        raise invalid(detail, "bad_moment") from refusal
    audit(caller_in(request), "pause queue", name)
    return {"changed": changed}


@router.post("/{path:name}/resume", auth=Needs(deeds.PAUSE), response=Changed)
def resume_queue(request: HttpRequest, name: str) -> dict[str, Any]:
    """Give out its work again."""
    database = database_of(request)
    _check_form(name)
    changed = resume(database, name)
    if not changed:
        check_known(database, name)
    audit(caller_in(request), "resume queue", name)
    return {"changed": changed}


@router.delete("/{path:name}/jobs", auth=Needs(deeds.DISCARD), response=Cleared)
def clear_jobs_of_queue(
    request: HttpRequest,
    name: str,
    state: Annotated[list[Waiting] | None, Query(max_length=3)] = None,
) -> dict[str, Any]:
    """Delete the jobs that wait in it, or those in these states.

    What runs is left alone, also if all that is `pending` is meant.
    """
    database = database_of(request)
    check_known(database, name)
    done = clear_queue(
        database,
        name,
        state or (),
        on_progress=lambda tally: tally.done < MOST_CLEARED,
    )
    audit(caller_in(request), "clear queue", name, done, "jobs")
    return {"deleted": done, "is_complete": done < MOST_CLEARED}


# Behind the others: a name may have a slash.
@router.get("/{path:name}", auth=Needs(LOOK), response=QueueFacts)
def queue(request: HttpRequest, name: str) -> dict[str, Any]:
    """One of them, or one that only tasks, workers or statistics tell of."""
    database = database_of(request)
    check_known(database, name)
    return _told(queue_in_full(database, name), servers(database))


def check_known(database: str, name: str) -> None:
    """A problem if nobody knows such a queue: a misspelt one is not paused."""
    _check_form(name)
    if not is_known(database, name):
        raise not_found(f"No such queue: {name}.", "unknown_queue")


def _check_form(name: str) -> None:
    """A problem if no queue can have that name."""
    if problem := queue_name_problem(name):
        raise not_found(problem, "unknown_queue")


def _told(status: QueueStatus, alive: list[WorkerStatus]) -> dict[str, Any]:
    return {
        "name": status.name,
        "ready": status.ready,
        "scheduled": status.scheduled,
        "blocked": status.blocked,
        "running": status.running,
        "oldest_ready_at": status.oldest_ready_at,
        "latency": status.latency.total_seconds(),
        "is_paused": status.is_paused,
        "paused_at": status.paused_at,
        "paused_until": status.paused_until,
        "listeners": [_listener(it) for it in alive if it.serves(status.name)],
    }


def _listener(worker: WorkerStatus) -> dict[str, Any]:
    return {
        "id": worker.id,
        "name": worker.name,
        "is_external": worker.is_external,
        "is_quiet": worker.is_quiet,
    }
