"""What is done to jobs: to one, to some by their ids, to all that match."""

from collections.abc import Callable
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Schema, Status
from pydantic import Field

from robust_queue.lifecycle import operations
from robust_queue.lifecycle.deeds import do_to
from robust_queue.lifecycle.selection import standing

from . import deeds, job_schemas
from .access import Caller, Needs, audit, caller_in, database_of
from .deeds import TO_JOBS
from .job_facts import Eyes
from .job_schemas import BodyFilter, JobFilter, Standing
from .jobs import job_at, told_in_full
from .operations import OperationFacts, operation_facts
from .problems import conflict, invalid, not_found
from .rerunning import router
from .searching import search_of
from .wire import Request

__all__ = ["router"]


class Meant(Request):
    """Which jobs: by their ids, or all that match."""

    ids: list[UUID] | None = Field(
        default=None, min_length=1, max_length=job_schemas.MOST_AT_ONCE
    )
    filter: BodyFilter | None = Field(
        default=None, description="`{}` means all jobs that are in a state for it."
    )


class Left(Schema):
    """A job that was in no state for it."""

    id: UUID
    state: Literal[Standing, "gone"] = Field(description="`gone` if it is not there.")


class Done(Schema):
    """What was done to some jobs."""

    done: int
    left: list[Left]
    passed_over: dict[str, int] = Field(
        description="Jobs that somebody else got hold of meanwhile, by their state."
    )


def _declare(verb: str) -> None:
    """Two addresses for a verb: to one job, and to many."""
    deed, word = TO_JOBS[verb], verb.replace("_", "-")
    one, many = _to_one(verb), _to_many(verb)
    if verb not in ("discard", "clear"):
        path = f"/{{uuid:job_id}}/{word}"
        router.post(path, auth=Needs(deed), response=job_schemas.JobAsSeen)(one)
    answers = {200: Done, 202: OperationFacts}
    router.post(f"/{word}", auth=Needs(deed), response=answers)(many)


def _to_one(verb: str) -> Callable[..., Any]:
    def view(request: HttpRequest, job_id: UUID) -> dict[str, Any]:
        database, caller = database_of(request), caller_in(request)
        found = job_at(database, job_id)
        _do_to_one(database, caller, verb, job_id)
        return told_in_full(database, found, caller)

    return _named(view, f"{verb}_job", f"{_SAID[verb]} It is told as it is then.")


def _to_many(verb: str) -> Callable[..., Any]:
    def view(request: HttpRequest, meant: Meant) -> Any:
        if (meant.ids is None) == (meant.filter is None):
            raise invalid("Say which jobs: either ids, or a filter.")
        if meant.ids is not None:
            return Status(200, _do_to_named(request, verb, meant.ids))
        return Status(202, _ask_for(request, verb, meant.filter or BodyFilter()))

    told = f"{_SAID[verb]} To jobs by their ids at once, to all that match a filter "
    return _named(view, f"{verb}_jobs", f"{told}in the background, by dispatchers.")


_SAID = {
    "retry": "Send failed jobs back to their queues, for one more attempt.",
    "cancel": "End jobs that wait, and ask those that run to end.",
    "run_now": "Have scheduled jobs be due at once.",
    "discard": "Delete jobs that wait or have failed, with their past.",
    "clear": "Delete finished jobs, with their past.",
}


def _named(view: Any, name: str, words: str) -> Callable[..., Any]:
    named: Callable[..., Any] = view
    named.__name__, named.__qualname__, named.__doc__ = name, name, words
    return named


for _verb in TO_JOBS:
    _declare(_verb)


@router.delete("/{uuid:job_id}", auth=Needs(deeds.DISCARD), response={204: None})
def delete_job(request: HttpRequest, job_id: UUID) -> Status[None]:
    """Delete a job that waits or is over, with its past."""
    database, caller = database_of(request), caller_in(request)
    is_over = standing(database, [job_id]).get(job_id) == "finished"
    _do_to_one(database, caller, "clear" if is_over else "discard", job_id)
    return Status(204, None)


def _do_to_one(database: str, caller: Caller, verb: str, job_id: UUID) -> None:
    outcome = do_to(database, verb, [job_id])
    if outcome.tally.done:
        audit(caller, verb, job_id)
        return
    state = standing(database, [job_id]).get(job_id)
    if state is None:
        raise not_found("There is no such job.", "unknown_job")
    raise conflict(f"The job is {state}: it cannot be {_PAST[verb]}.", "wrong_state")


_PAST = {
    "retry": "retried",
    "cancel": "cancelled",
    "run_now": "run now",
    "discard": "discarded",
    "clear": "cleared",
}


def _do_to_named(request: HttpRequest, verb: str, ids: list[UUID]) -> dict[str, Any]:
    outcome = do_to(database_of(request), verb, list(dict.fromkeys(ids)))
    audit(caller_in(request), verb, f"{outcome.tally.done} jobs")
    left = [{"id": job_id, "state": state} for job_id, state in outcome.left.items()]
    tally = outcome.tally
    return {"done": tally.done, "left": left, "passed_over": dict(tally.passed_over)}


def _ask_for(request: HttpRequest, verb: str, wanted: JobFilter) -> dict[str, Any]:
    caller = caller_in(request)
    search = search_of(caller, wanted)
    try:
        operation = operations.request(
            database_of(request), verb, search, requested_by=caller.name
        )
    except ValueError as error:
        raise invalid(str(error), "bad_filter") from error
    audit(caller, verb, "operation", operation.pk, search.discreet_words)
    return operation_facts(operation, Eyes(caller))
