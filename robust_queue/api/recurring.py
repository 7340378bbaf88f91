"""Recurring tasks: looked at, made, changed, paused, run now, taken away."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Status

from robust_queue.compat import InvalidTask
from robust_queue.exceptions import (
    ConfigurationError,
    RecurringKeyTakenError,
    RecurringTaskError,
    RobustQueueError,
)
from robust_queue.lifecycle import timetable
from robust_queue.models import RecurringExecution, RecurringTask

from . import deeds
from . import recurring_schemas as schemas
from .access import Needs, audit, caller_in, database_of
from .calls import checked_call
from .deeds import ENQUEUE, LOOK_AT_RECURRING
from .job_facts import Eyes, check_sight
from .problems import conflict, invalid, not_found

router = Router(tags=["Recurring tasks"])
runs = Router(tags=["Recurring tasks"])


@router.get("", auth=Needs(LOOK_AT_RECURRING), response=list[schemas.RecurringFacts])
def list_recurring(
    request: HttpRequest,
    after: Annotated[str | None, Query(max_length=255)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[dict[str, Any]]:
    """Recurring tasks by key; those behind one that is known."""
    rows = RecurringTask.objects.using(database_of(request)).order_by("key")
    if after:
        rows = rows.filter(key__gt=_without_nul(after))
    eyes = _eyes(request)
    return [_told(each, eyes) for each in rows[:limit]]


@router.post(
    "", auth=Needs(deeds.ADD_RECURRING), response={201: schemas.RecurringFacts}
)
def create_recurring(
    request: HttpRequest, new: schemas.NewTimetable
) -> Status[dict[str, Any]]:
    """Have a declared task recur from now on."""
    return Status(201, _put(request, new.key, new, replaces=False))


@router.post(
    "/{path:key}/pause", auth=Needs(deeds.CHANGE_RECURRING), response=schemas.Toggled
)
def pause_recurring(request: HttpRequest, key: str) -> dict[str, Any]:
    """Let its instants pass."""
    return _toggle(request, key, timetable.pause)


@router.post(
    "/{path:key}/resume", auth=Needs(deeds.CHANGE_RECURRING), response=schemas.Toggled
)
def resume_recurring(request: HttpRequest, key: str) -> dict[str, Any]:
    """Go on with the next instant."""
    return _toggle(request, key, timetable.resume)


@router.post(
    "/{path:key}/run",
    auth=Needs(deeds.RUN_RECURRING),
    response={201: schemas.InstantFacts},
)
def run_recurring(request: HttpRequest, key: str) -> Status[dict[str, Any]]:
    """Enqueue a run at once, whatever the schedule says and although it be paused."""
    database = database_of(request)
    _found(database, key)
    eyes = Eyes(caller_in(request))
    with _refusals(eyes):
        run = timetable.run_now(database, key)
    audit(caller_in(request), "run recurring", key)
    return Status(201, _run(run, eyes))


# At an address of its own: below its key it could be a longer key as well.
@runs.get("", auth=Needs(LOOK_AT_RECURRING), response=list[schemas.InstantFacts])
def runs_of_recurring(
    request: HttpRequest,
    key: Annotated[str, Query(max_length=255, description="Of the recurring task.")],
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[dict[str, Any]]:
    """The latest instants of a recurring task, the last first. They outlive it."""
    rows = RecurringExecution.objects.using(database_of(request))
    latest = rows.filter(task_key=_without_nul(key)).order_by("-run_at")[:limit]
    eyes = Eyes(caller_in(request))
    return [_run(each, eyes) for each in latest]


# Behind the others: a key may have a slash.
@router.get(
    "/{path:key}", auth=Needs(LOOK_AT_RECURRING), response=schemas.RecurringFacts
)
def recurring(request: HttpRequest, key: str) -> dict[str, Any]:
    """One of them."""
    return _told(_found(database_of(request), key), _eyes(request))


@router.put(
    "/{path:key}", auth=Needs(deeds.CHANGE_RECURRING), response=schemas.RecurringFacts
)
def replace_recurring(
    request: HttpRequest, key: str, told: schemas.Timetable
) -> dict[str, Any]:
    """Change one that was made at run time; what is not said is as it is by default."""
    found = _found(database_of(request), key)
    check_sight(caller_in(request), found.task_path, found.arguments)
    return _put(request, key, told, replaces=True)


@router.delete("/{path:key}", auth=Needs(deeds.DELETE_RECURRING), response={204: None})
def delete_recurring(request: HttpRequest, key: str) -> Status[None]:
    """Have it recur no longer. Its history stays."""
    database = database_of(request)
    _found(database, key)
    with _refusals():
        timetable.unschedule(database, key)
    audit(caller_in(request), "unschedule recurring", key)
    return Status(204, None)


def _put(
    request: HttpRequest, key: str, told: schemas.Timetable, *, replaces: bool
) -> dict[str, Any]:
    caller, database = caller_in(request), database_of(request)
    # It enqueues the task again and again.
    caller.must(ENQUEUE, told.task)
    given = told.model_dump(exclude={"key", "task", "args", "kwargs", "queue"})
    args, kwargs = checked_call(told.task, told.args, told.kwargs)
    with _refusals():
        row = timetable.schedule(
            database,
            key,
            told.task,
            args=args,
            kwargs=kwargs,
            queue_name=told.queue,
            replace=replaces,
            **given,
        )
    audit(caller, "schedule recurring", key)
    return _told(row, _eyes(request))


def _toggle(
    request: HttpRequest, key: str, change: Callable[[str, str], bool]
) -> dict[str, Any]:
    database = database_of(request)
    _found(database, key)
    with _refusals():
        changed = change(database, key)
    audit(caller_in(request), f"{change.__name__} recurring", key)
    return {"changed": changed}


@contextmanager
def _refusals(eyes: Eyes | None = None) -> Iterator[None]:
    try:
        yield
    except RecurringKeyTakenError as refusal:
        detail = "Something recurs under that key already. PUT changes it."
        raise conflict(detail, "refused") from refusal
    except RecurringTaskError as refusal:
        is_told = eyes is None or eyes.sees_contents
        detail = str(refusal) if is_told else refusal.discreet
        raise conflict(detail, "refused") from refusal
    except (ConfigurationError, InvalidTask, TypeError, ValueError) as refusal:
        raise invalid(str(refusal), "bad_timetable") from refusal
    except RobustQueueError as refusal:
        raise conflict(str(refusal), "refused") from refusal


def _found(database: str, key: str) -> RecurringTask:
    row = RecurringTask.objects.using(database).filter(key=_without_nul(key)).first()
    if row is None:
        raise not_found("There is no such recurring task.", "unknown_recurring_task")
    return row


def _without_nul(key: str) -> str:
    # No key has one, and PostgreSQL will not be asked for it.
    return key.replace("\0", "\ufffd")


def _eyes(request: HttpRequest) -> Eyes:
    return Eyes(caller_in(request), LOOK_AT_RECURRING)


def _told(row: RecurringTask, eyes: Eyes) -> dict[str, Any]:
    return {
        "key": row.key,
        "task": row.task_path,
        "schedule": row.schedule,
        "timezone": row.timezone,
        "queue": row.queue_name,
        "priority": row.priority,
        "description": row.description,
        "state": row.state,
        "enabled": row.enabled,
        "is_declared": row.static,
        "on_missed": row.on_missed,
        "missed_limit": row.missed_limit,
        "overlap": row.overlap,
        "jitter": row.jitter,
        "next_run_at": row.next_run_at,
        "contents": eyes.contents,
        **eyes.call(row.task_path, row.arguments),
    }


def _run(entry: RecurringExecution, eyes: Eyes) -> dict[str, Any]:
    return {
        "run_at": entry.run_at,
        "by_hand": entry.by_hand,
        "outcome": entry.outcome,
        "reason": entry.reason if eyes.sees_contents else entry.discreet_reason,
        "job": entry.job_id,
    }
