"""The walk along all jobs that a search finds, whatever it takes to find them.

Each step begins behind the last one, and reads no more than a stretch of the table.
"""

from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from robust_queue.models import Job

from .search import Bounds, JobSearch, bounded
from .selection import BATCH_SIZE

# As many rows are looked through at a time, where no index finds those that match.
STRETCH = 10_000


class Step(NamedTuple):
    """Some jobs that match, and how far that was looked; None: to the end."""

    ids: list[UUID]
    end: UUID | None


def step(
    database: str, search: JobSearch, state: str, *, behind: UUID | None, newest: UUID
) -> Step:
    """The next jobs of that state that match, a batch at most.

    Behind one that is known, and not beyond the newest that is meant. Looks through a
    stretch: a step may be without any job, and not be the last.
    """
    bounds = {"pk__lte": newest} | ({"pk__gt": behind} if behind else {})
    edge = (
        edge_of(search.rows(database, state).filter(**bounds))
        if search.is_long
        else None
    )
    ids = list(matching(database, search, state, bounds, edge)[:BATCH_SIZE])
    return Step(ids, ids[-1] if len(ids) == BATCH_SIZE else edge)


def count_up_to(
    database: str, search: JobSearch, state: str, *, newest: UUID, most: int
) -> int | None:
    """How many jobs of that state match; None if there are more, or no index tells."""
    bounds = {"pk__lte": newest}
    if search.is_long and edge_of(search.rows(database, state).filter(**bounds)):
        return None
    found = matching(database, search, state, bounds)
    number = int(found.order_by()[: most + 1].count())
    return number if number <= most else None


def matching(
    database: str,
    search: JobSearch,
    state: str,
    bounds: Bounds,
    edge: UUID | None = None,
) -> QuerySet[Any]:
    """The ids of jobs of that state that match, within bounds and up to an edge."""
    ends = bounds | ({"pk__lte": edge} if edge else {})
    if search.is_by_key:
        # Jobs are wide: where their own columns do not matter they are not read.
        rows = search.rows(database, state).filter(**ends)
        return rows.order_by("pk").values_list("pk", flat=True)
    return in_full(database, search, state, ends).values_list("pk", flat=True)


def in_full(
    database: str, search: JobSearch, state: str, ends: Bounds
) -> QuerySet[Job]:
    """The jobs of that state that match, between two ids, in their order."""
    relation = f"{state}_execution" if state else ""
    jobs = search.narrowed(Job.objects.using(database), state)
    within = bounded(bounded(jobs, search.bounds(), relation), ends, relation)
    return within.order_by("pk")


def edge_of(
    rows: QuerySet[Any], stretch: int | None = None, order: str = "pk"
) -> UUID | None:
    """The last row of a stretch, if it is not the last of all."""
    stretch = stretch or STRETCH
    keys = rows.order_by(order).values_list("pk", flat=True)
    edge, *beyond = [*keys[stretch - 1 : stretch + 1]] or [None]
    return edge if beyond else None
