"""Jobs that run anew as new ones, changed or not: one, or all that match."""

from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from ninja import Schema, Status
from pydantic import Field

from robust_queue.compat import AnyResult
from robust_queue.exceptions import (
    DeserializationError,
    UnknownTaskError,
    UnreplaceableError,
)
from robust_queue.lifecycle.rerun import FINISHED, REFUSALS, rerun
from robust_queue.lifecycle.search_pages import page
from robust_queue.lifecycle.selection import PENDING
from robust_queue.models import Job

from . import deeds, job_schemas
from .access import Caller, Needs, audit, caller_in, database_of
from .calls import checked_call
from .job_facts import Eyes, check_sight, made_of
from .job_schemas import BodyFilter, QueueText, TaskPriority
from .jobs import job_at, router, told_in_full
from .problems import Problem, conflict, invalid
from .refusals import problem_of
from .searching import search_of
from .wire import Moment, Request, Whole

__all__ = ["router"]


class Changes(Request):
    """What of a job is to be different."""

    queue: QueueText | None = None
    priority: TaskPriority | None = None
    run_after: Moment | None = None


class Edit(Changes):
    """Likewise, also what it is called with."""

    args: list[Any] | None = None
    kwargs: dict[str, Any] | None = None


class EditMany(Changes):
    """Which jobs are to run anew, and what is to be different."""

    filter: BodyFilter
    behind: UUID | None = None
    limit: Whole = Field(default=100, ge=1, le=job_schemas.MOST_AT_ONCE)


class Replacement(Schema):
    """A job, and the one that was made from it."""

    old: UUID
    new: UUID | None
    problem: str | None = Field(description="Why there is none.")


class Replacements(Schema):
    """What has become of some jobs, and where to go on."""

    jobs: list[Replacement]
    next: UUID | None


@router.post(
    "/{uuid:job_id}/rerun",
    auth=Needs(deeds.RERUN),
    response={201: job_schemas.JobAsSeen},
)
def rerun_job(
    request: HttpRequest, job_id: UUID, edit: Edit | None = None
) -> Status[dict[str, Any]]:
    """Replace a job that waits or has failed by a new one, changed or not.

    One that has finished stays, and another one is made from it.

    That, other arguments, and another queue take the leave to enqueue the task as well.
    A session takes that to see its arguments as they are.
    """
    database, caller, edit = database_of(request), caller_in(request), edit or Edit()
    old = job_at(database, job_id)
    check_sight(caller, old.task_path, old.arguments)
    _check_leave(caller, old, edit)
    call = _new_call(caller, old, edit)
    result = _rerun(database, caller, job_id, **call, **_changes(edit))
    audit(caller, "rerun", job_id, "as", result.id)
    return Status(201, told_in_full(database, made_of(result), caller))


@router.post("/rerun", auth=Needs(deeds.RERUN), response=Replacements)
def rerun_jobs(request: HttpRequest, meant: EditMany) -> dict[str, Any]:
    """Replace waiting or failed jobs that match by new ones, some at a time.

    Finished ones stay, and others are made from them: whoever repeats that has it done
    again. Of all that is `pending` what runs is told as a problem, and left alone.
    """
    database, caller = database_of(request), caller_in(request)
    search, changes = search_of(caller, meant.filter), _changes(meant)
    is_pending = search.common_state == PENDING
    if not (is_pending or set(search.states) <= _REPLACEABLE):
        raise invalid(
            "Name a state in the filter: scheduled, ready, blocked, pending, failed or "
            "finished."
        )
    # The newest first: those that are made from them are newer, and never met.
    found = page(database, search, limit=meant.limit, behind=meant.behind)
    for each in found.jobs:
        _check_leave(caller, each, meant)
    told = [_replaced(database, caller, each, changes) for each in found.jobs]
    audit(caller, "rerun", f"{sum(it['new'] is not None for it in told)} jobs")
    return {"jobs": told, "next": found.end}


_REPLACEABLE = {"scheduled", "ready", "blocked", "failed", "finished"}


def _check_leave(caller: Caller, old: Job, told: Changes) -> None:
    """Whether it takes the leave to enqueue its task as well."""
    # What has finished stays, so that there is one job more. And in another queue
    # somebody else may take it, who is told what it is about.
    if old.state == FINISHED or told.queue is not None:
        caller.must(deeds.ENQUEUE, old.task_path)


def _new_call(caller: Caller, old: Job, edit: Edit) -> dict[str, Any]:
    if edit.args is None and edit.kwargs is None:
        return {}
    caller.must(deeds.ENQUEUE, old.task_path)
    if edit.args is None or edit.kwargs is None:
        raise invalid(
            "Give both args and kwargs: together they replace the whole call."
        )
    args, kwargs = checked_call(old.task_path, edit.args, edit.kwargs)
    return {"args": args, "kwargs": kwargs}


def _changes(told: Changes) -> dict[str, Any]:
    return {
        "queue_name": told.queue,
        "priority": told.priority,
        "run_after": told.run_after,
    }


def _rerun(database: str, caller: Caller, job_id: UUID, **changes: Any) -> AnyResult:
    try:
        return rerun(database, job_id, **changes)
    except UnreplaceableError as refusal:
        raise conflict(str(refusal), "not_replaceable") from refusal
    except _OF_THE_JOB as refusal:
        problem = conflict(str(refusal), "not_replaceable")
        raise _discreet(problem, refusal, caller, changes) from refusal
    except REFUSALS as refusal:
        raise _discreet(problem_of(refusal), refusal, caller, changes) from refusal


def _discreet(
    problem: Problem, refusal: Exception, caller: Caller, changes: dict[str, Any]
) -> Problem:
    """The problem in words that quote no stored arguments to who may not see them."""
    is_of_their_own = "args" in changes
    if not (is_of_their_own or Eyes(caller).sees_contents):
        problem.detail = (
            f"It cannot be enqueued anew: {type(refusal).__name__}. More is told to "
            "those who may see its arguments."
        )
    return problem


# What is wrong with the job that there is; the others are about the new one.
_OF_THE_JOB = (
    DeserializationError,
    UnknownTaskError,
    ImproperlyConfigured,
)


def _replaced(
    database: str, caller: Caller, old: Job, changes: dict[str, Any]
) -> dict[str, Any]:
    try:
        _check_sight_of(database, caller, old)
        result = _rerun(database, caller, old.id, **changes)
    except Problem as problem:
        return {"old": old.id, "new": None, "problem": problem.detail}
    return {"old": old.id, "new": result.id, "problem": None}


def _check_sight_of(database: str, caller: Caller, old: Job) -> None:
    if caller.may(deeds.OVERWRITE_ALL):
        return
    # One after the other: those of each may take a megabyte.
    rows = Job.objects.using(database).filter(pk=old.id)
    arguments = rows.values_list("arguments", flat=True).first()
    if arguments is not None:
        check_sight(caller, old.task_path, arguments)
