"""What is done to all jobs that match: how far it has come, and an end to it."""

from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from robust_queue.lifecycle import operations
from robust_queue.lifecycle.search import JobSearch
from robust_queue.lifecycle.search_words import SearchError
from robust_queue.models import Operation
from robust_queue.models.operations import VERBS

from . import deeds
from .access import Needs, audit, caller_in, database_of
from .deeds import LOOK
from .job_facts import Eyes
from .problems import conflict, forbidden, not_found
from .wire import Stamp, among

router = Router(tags=["What is done to jobs"])


class OperationFacts(Schema):
    """One verb for all jobs that match, carried out in batches by a dispatcher."""

    id: UUID
    verb: Annotated[str, among(*(verb for verb, _ in VERBS))]
    which: str = Field(
        description="In words, without the text searched for in arguments."
    )
    status: Literal["waiting", "running", "stopped", "given up", "finished"]
    requested_by: str
    requested_at: Stamp
    started_at: Stamp | None
    finished_at: Stamp | None
    expected: int | None = Field(description="`null` if no index tells.")
    matched: int
    done: int
    passed_over: dict[str, int]
    problem: str = Field(description="Only its class, to who sees no arguments.")


def _may_look() -> Needs:
    # Whoever may ask for one is to see what becomes of it, as in the admin.
    return Needs(LOOK, *deeds.TO_JOBS.values())


@router.get("", auth=_may_look(), response=list[OperationFacts])
def list_operations(
    request: HttpRequest, limit: Annotated[int, Query(ge=1, le=500)] = 100
) -> list[dict[str, Any]]:
    """The latest ones. They are forgotten a week after their end."""
    rows = Operation.objects.using(database_of(request)).order_by("-pk")[:limit]
    eyes = Eyes(caller_in(request))
    return [operation_facts(each, eyes) for each in rows]


@router.get("/{uuid:operation_id}", auth=_may_look(), response=OperationFacts)
def operation(request: HttpRequest, operation_id: UUID) -> dict[str, Any]:
    """How far one has come."""
    found = _found(database_of(request), operation_id)
    return operation_facts(found, Eyes(caller_in(request)))


@router.post(
    "/{uuid:operation_id}/stop",
    auth=Needs(deeds.STOP_OPERATION),
    response=OperationFacts,
)
def stop_operation(request: HttpRequest, operation_id: UUID) -> dict[str, Any]:
    """Do no more of it. What is done stays done."""
    database, caller = database_of(request), caller_in(request)
    # Nobody else is told which operations there are.
    if not any(map(caller.may, deeds.TO_JOBS.values())):
        raise forbidden("This takes the leave to ask for an operation.")
    found = _found(database, operation_id)
    # Whoever may ask for it may end it.
    caller.must(deeds.TO_JOBS.get(found.verb, deeds.STOP_UNKNOWN))
    if not operations.stop(database, operation_id):
        raise conflict("The operation is over already.", "wrong_state")
    audit(caller, "stop", "operation", operation_id)
    return operation_facts(_found(database, operation_id), Eyes(caller))


def operation_facts(operation: Operation, eyes: Eyes) -> dict[str, Any]:
    """An operation as it is told."""
    problem = operation.problem
    return {
        "id": operation.pk,
        "verb": operation.verb,
        "which": _words(operation),
        "status": operation.status,
        "requested_by": operation.requested_by,
        "requested_at": operation.requested_at,
        "started_at": operation.started_at,
        "finished_at": operation.finished_at,
        "expected": operation.expected,
        "matched": operation.matched,
        "done": operation.done,
        "passed_over": operation.reasons,
        # A database may quote the rows that it refuses.
        "problem": problem if eyes.sees_contents else problem.partition(":")[0],
    }


def _words(operation: Operation) -> str:
    try:
        return JobSearch.read(operation.criteria).discreet_words
    except SearchError:
        return ""  # of a later version, and nobody knows what of it is a secret


def _found(database: str, operation_id: UUID) -> Operation:
    found = Operation.objects.using(database).filter(pk=operation_id).first()
    if found is None:
        raise not_found("There is no such operation.", "unknown_operation")
    return found
