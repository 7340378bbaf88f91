"""The jobs that a search finds, a page at a time, in either direction.

Each page begins where the last one ended, and costs as much as the first, however many
there are and wherever they stand. Nothing is kept between two pages: no cursor of the
database, no snapshot, no row that is read to be passed over.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from robust_queue.models import Job

from .search import Bounds, JobSearch
from .search_walk import edge_of, matching

# Whoever lists jobs does not need what may be a megabyte of each.
WIDE = (
    "metadata",
    "unique_key",
    "partition_key",
    "finished_execution__result",
    "failed_execution__message",
    "failed_execution__traceback",
)


PATIENCE = 0.5  # seconds


class Page(NamedTuple):
    """Some jobs, and behind which id to go on; None: that was all.

    A page may be without any job, and not be the last.
    """

    jobs: list[Job]
    end: UUID | None


class Found(NamedTuple):
    """Ids of one table, and how far that was looked; None: to the end."""

    ids: list[UUID]
    end: UUID | None


def page(
    database: str,
    search: JobSearch,
    *,
    limit: int,
    behind: UUID | None = None,
    newest: UUID | None = None,
    is_upward: bool = False,
    with_arguments: bool = False,
) -> Page:
    """The next jobs that match, the newest first, or the oldest if it goes upward.

    None behind the newest that is meant, if one is named.
    """
    bounds = _bounds(behind, newest, is_upward=is_upward)
    found = [
        _found(database, search, each, limit, bounds, is_upward=is_upward)
        for each in search.states
    ]
    ids, end = _together(found, limit, is_upward=is_upward)
    wide = WIDE if with_arguments else (*WIDE, "arguments")
    jobs = Job.objects.using(database).with_state().defer(*wide).in_bulk(ids)
    return Page([jobs[each] for each in ids if each in jobs], end)


def filled_page(database: str, search: JobSearch, **how: Any) -> Page:
    """The next page, and if there is nothing on it those behind it, for a while."""
    until = time.monotonic() + PATIENCE
    found = page(database, search, **how)
    while not found.jobs and found.end is not None and time.monotonic() < until:
        found = page(database, search, **{**how, "behind": found.end})
    return found


def pages(database: str, search: JobSearch, **how: Any) -> Iterator[list[Job]]:
    """All of them that are there by now."""
    ids = Job.objects.using(database).order_by("-pk").values_list("pk", flat=True)
    newest, behind = ids.first(), None
    while True:
        jobs, behind = page(database, search, behind=behind, newest=newest, **how)
        yield jobs
        if behind is None:
            return


def _bounds(behind: UUID | None, newest: UUID | None, *, is_upward: bool) -> Bounds:
    near = "gt" if is_upward else "lt"
    ends = {f"pk__{near}": behind, "pk__lte": newest}
    return {lookup: pk for lookup, pk in ends.items() if pk is not None}


def _found(
    database: str,
    search: JobSearch,
    state: str,
    limit: int,
    bounds: Bounds,
    *,
    is_upward: bool,
) -> Found:
    far, order = ("lte", "pk") if is_upward else ("gte", "-pk")
    edge = _edge(database, search, state, bounds, order)
    ends = bounds | ({f"pk__{far}": edge} if edge else {})
    ids = list(matching(database, search, state, ends).order_by(order)[: limit + 1])
    return Found(ids[:limit], ids[limit - 1] if len(ids) > limit else edge)


def _edge(
    database: str, search: JobSearch, state: str, bounds: Bounds, order: str
) -> UUID | None:
    """The last row of a stretch, where jobs are looked at one by one."""
    if not (search.is_long_in(database) or search.has_vague_ends):
        return None
    return edge_of(search.rows(database, state).filter(**bounds), order=order)


def _together(found: list[Found], limit: int, *, is_upward: bool) -> Found:
    """One page of several tables: no further than all of them were looked at.

    A job that changed its table meanwhile may be in two of them.
    """
    ends = [each.end for each in found if each.end is not None]
    nearest = min if is_upward else max
    horizon = nearest(ends) if ends else None
    ids = {each for some in found for each in some.ids}
    ordered = sorted(ids, reverse=not is_upward)
    if horizon is not None:
        ordered = [it for it in ordered if it == nearest(it, horizon)]
    if len(ordered) > limit:
        return Found(ordered[:limit], ordered[limit - 1])
    return Found(ordered, horizon)
