"""Jobs: listed, streamed, counted, looked at."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query, Router

from robust_queue.lifecycle.search import JobSearch
from robust_queue.lifecycle.search_counts import Group, Place, numbers, places
from robust_queue.lifecycle.search_pages import filled_page, pages
from robust_queue.models import Job

from . import job_schemas as schemas
from .access import Caller, Needs, caller_in, database_of
from .deeds import LOOK
from .job_facts import (
    GONE,
    Eyes,
    facts,
    facts_in_full,
    facts_of_gone,
    facts_of_gone_in_full,
)
from .lasting import Watch, never_silent
from .problems import invalid, not_found
from .searching import search_of
from .wire import line_of

# Jobs that are read at a time for a stream; as many are in memory. Arguments may take a
# megabyte each.
BLOCK = 500
BLOCK_WITH_ARGUMENTS = 20
NDJSON = "application/x-ndjson"

Groups = Literal["state", "queue", "task"]

router = Router(tags=["Jobs"])

Filter = Annotated[schemas.JobFilter, Query(...)]
Limit = Annotated[int, Query(ge=1, le=schemas.MOST_AT_ONCE)]
Behind = Annotated[str | None, Query(max_length=60)]


@router.get("", auth=Needs(LOOK), response=schemas.JobPage)
def list_jobs(
    request: HttpRequest,
    wanted: Filter,
    *,
    behind: UUID | None = None,
    limit: Limit = 100,
    order: schemas.Order = "newest",
    arguments: bool = False,
) -> dict[str, Any]:
    """Some of the jobs that match. Each page costs as much as the first.

    With arguments a page has twenty jobs at most: each may take a megabyte.
    """
    caller = caller_in(request)
    found = filled_page(
        database_of(request),
        search_of(caller, wanted),
        limit=min(limit, BLOCK_WITH_ARGUMENTS) if arguments else limit,
        behind=behind,
        is_upward=order == "oldest",
        with_arguments=arguments,
    )
    eyes = Eyes(caller)
    told = [facts(each, eyes, with_arguments=arguments) for each in found.jobs]
    return {"jobs": told, "next": found.end}


_LINES = {
    "responses": {
        200: {
            "description": "A job in each line; an empty line now and then where "
            "nothing is found for long.",
            "content": {
                NDJSON: {"schema": {"$ref": "#/components/schemas/Job"}},
            },
        }
    }
}


@router.get("/stream", auth=Needs(LOOK), openapi_extra=_LINES)
def stream_jobs(
    request: HttpRequest,
    wanted: Filter,
    *,
    order: schemas.Order = "oldest",
    arguments: bool = False,
) -> StreamingHttpResponse:
    """All jobs that match, each as a line of JSON, however many there are."""
    caller, database = caller_in(request), database_of(request)
    lines = never_silent(
        _lines(
            database,
            search_of(caller, wanted),
            Eyes(caller),
            Watch(database, caller),
            is_upward=order == "oldest",
            with_arguments=arguments,
        )
    )
    # Django reads an ordinary iterator to its end before an ASGI server sees any of it.
    is_async = isinstance(request, ASGIRequest)
    body: Any = _one_by_one(lines) if is_async else lines
    response = StreamingHttpResponse(body, content_type=NDJSON)
    # Proxies would gather it.
    response["X-Accel-Buffering"] = "no"
    return response


@router.get("/count", auth=Needs(LOOK), response=schemas.Count)
def count_jobs(
    request: HttpRequest, wanted: Filter, behind: Behind = None
) -> dict[str, Any]:
    """How many jobs match, counted for a few seconds at most."""
    search = search_of(caller_in(request), wanted)
    found = numbers(database_of(request), search, place=_place(behind, search))
    return {"count": found.total, **_going_on(found.place)}


@router.get("/counts", auth=Needs(LOOK), response=schemas.Counts)
def count_jobs_in_groups(
    request: HttpRequest,
    wanted: Filter,
    by: Groups = "state",
    behind: Behind = None,
) -> dict[str, Any]:
    """How many jobs match, by their state, their queue or their task."""
    search = search_of(caller_in(request), wanted)
    place = _place(behind, search, by)
    found = numbers(database_of(request), search, by, place=place)
    groups = [{"name": name, "count": n} for name, n in found.groups.most_common()]
    return {"groups": groups, **_going_on(found.place)}


@router.get("/{uuid:job_id}", auth=Needs(LOOK), response=schemas.JobInFull)
def job(request: HttpRequest, job_id: UUID) -> dict[str, Any]:
    """All there is to tell of a job."""
    database = database_of(request)
    found = job_at(database, job_id)
    return facts_in_full(database, found, Eyes(caller_in(request)))


def job_at(database: str, job_id: UUID) -> Job:
    """The job of that id, with its state; a problem if there is none."""
    found = _find(database, job_id)
    if found is None:
        raise not_found("There is no such job.", "unknown_job")
    return found


# What was done is done. A worker may be through with the job before it is told of, and
# leave nothing of it: then it is told of as it was known.


def told_of(database: str, known: Job, caller: Caller) -> dict[str, Any]:
    """A job to which something was done, or that is new."""
    found, eyes = _find(database, known.pk), Eyes(caller)
    if found is None:
        return facts_of_gone(known, eyes)
    return facts(found, eyes, with_arguments=True)


def told_of_all(
    database: str, known: Sequence[Job], caller: Caller
) -> list[dict[str, Any]]:
    """Several of them, in the same order, without their arguments."""
    rows = Job.objects.using(database).with_state().defer("arguments")
    found = {job.pk: job for job in rows.filter(pk__in=[each.pk for each in known])}
    eyes = Eyes(caller)
    return [
        facts(found[each.pk], eyes, with_arguments=False)
        if each.pk in found
        else facts_of_gone(each, eyes) | {"args": None, "kwargs": None}
        for each in known
    ]


def told_in_full(database: str, known: Job, caller: Caller) -> dict[str, Any]:
    """All there is to tell of it; where it stands, to those who may not look at it."""
    found, eyes = _find(database, known.pk), Eyes(caller)
    if not eyes.may_look:
        return {"id": known.pk, "state": found.state if found else GONE}
    if found is None:
        return facts_of_gone_in_full(known, eyes)
    return facts_in_full(database, found, eyes)


def _find(database: str, job_id: UUID) -> Job | None:
    jobs = Job.objects.using(database).with_state()
    found: Job | None = jobs.filter(pk=job_id).first()
    return found


def _lines(
    database: str,
    search: JobSearch,
    eyes: Eyes,
    watch: Watch,
    *,
    with_arguments: bool,
    **how: Any,
) -> Iterator[bytes]:
    """Blocks of lines; empty ones where nothing was found for a stretch."""
    limit = BLOCK_WITH_ARGUMENTS if with_arguments else BLOCK
    asked = {"limit": limit, "with_arguments": with_arguments, **how}
    for jobs in pages(database, search, **asked):
        # The server breaks the answer off, lest it be taken for all there is.
        watch.look()
        told = (facts(each, eyes, with_arguments=with_arguments) for each in jobs)
        yield b"".join(line_of(each) for each in told)


async def _one_by_one(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    following = sync_to_async(lambda: next(lines, None))
    while (block := await following()) is not None:
        yield block


def _place(text: str | None, search: JobSearch, group: Group = "") -> Place | None:
    """Where to go on counting, as it was told before."""
    if text is None:
        return None
    state, _, behind = text.partition(".")
    try:
        place = Place(state, UUID(behind) if behind else None)
    except ValueError:
        place = Place("?")
    if place.state not in places(search, group):
        raise invalid(
            "`behind` is not the `next` of an earlier answer for this filter.",
            "bad_place",
        )
    return place


def _going_on(place: Place | None) -> dict[str, Any]:
    told = None if place is None else f"{place.state}.{place.behind or ''}"
    return {"is_complete": place is None, "next": told}
