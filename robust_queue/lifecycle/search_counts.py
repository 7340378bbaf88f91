"""How many jobs a search finds, all at once or bit by bit, as a whole or in groups.

What an index tells is counted in one statement. Where jobs have to be looked at, that
is done a stretch of the primary key at a time, until the time is up; then it is told
how far it has come, so that whoever asks may go on from there.
"""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias
from uuid import UUID

from django.db.models import Count, QuerySet

from robust_queue.models import ReadyExecution

from .search import JobSearch
from .search_walk import edge_of, in_full, matching
from .selection import ENDED, PENDING_STATES

# Rows that are looked at in one statement.
STRETCH = 50_000
PATIENCE = 5.0  # seconds

Group: TypeAlias = Literal["", "state", "queue", "task"]

_COLUMNS = {"queue": "queue_name", "task": "task_path"}
_STATES = (*PENDING_STATES, *ENDED)


class Place(NamedTuple):
    """The state that is being counted, and its last job that was; None: none yet."""

    state: str
    behind: UUID | None = None


class Numbers(NamedTuple):
    """How many there are, by what they were grouped by, and where to go on.

    Without a place that was all.
    """

    groups: Counter[str]
    place: Place | None

    @property
    def total(self) -> int:
        return self.groups.total()


def numbers(
    database: str,
    search: JobSearch,
    group: Group = "",
    *,
    place: Place | None = None,
    patience: float | None = None,
) -> Numbers:
    """Count the jobs that match, from a place on, for about as many seconds."""
    until = time.monotonic() + (PATIENCE if patience is None else patience)
    groups = Counter[str]()
    for here, found in _steps(database, search, group, place):
        groups += found
        if here is not None and time.monotonic() >= until:
            return Numbers(groups, here)
    return Numbers(groups, None)


def places(search: JobSearch, group: Group = "") -> tuple[str, ...]:
    """The states that are counted one after the other; an empty one stands for all."""
    is_apart = group == "state" and not search.common_state
    return _STATES if is_apart else search.states


def _steps(
    database: str, search: JobSearch, group: Group, place: Place | None
) -> Iterator[tuple[Place | None, Counter[str]]]:
    """What is found step by step, and where the next step begins."""
    states = places(search, group)
    left = states[states.index(place.state) :] if place else states
    for state, following in zip(left, [*left[1:], None], strict=True):
        behind = place.behind if place and state == place.state else None
        then = None if following is None else Place(following)
        at_once = None if behind else _at_once(database, search, group, state)
        if at_once is not None:
            yield then, at_once
            continue
        for end, found in _stretches(database, search, group, state, behind):
            yield (then if end is None else Place(state, end)), found


def _at_once(
    database: str, search: JobSearch, group: Group, state: str
) -> Counter[str] | None:
    """What an index tells; None if jobs have to be looked at."""
    if search.is_by_key and group in ("", "state"):
        rows = search.rows(database, state)
        return Counter({_label(group, state): rows.order_by().count()})
    is_of_queues = search.given.keys() <= {"state", "queue"} and group != "task"
    if state == "ready" and is_of_queues:
        return _ready(database, search.queue, group)
    return None


def _ready(database: str, queue: str | None, group: Group) -> Counter[str]:
    rows: QuerySet[Any] = ReadyExecution.objects.using(database).order_by()
    rows = rows if queue is None else rows.filter(queue_name=queue)
    if group != "queue":
        return Counter({_label(group, "ready"): rows.count()})
    return _counted(rows, "queue_name")


def _stretches(
    database: str, search: JobSearch, group: Group, state: str, behind: UUID | None
) -> Iterator[tuple[UUID | None, Counter[str]]]:
    while True:
        bounds = {"pk__gt": behind} if behind else {}
        rows = search.rows(database, state).filter(**bounds)
        end = edge_of(rows, STRETCH)
        ends = bounds | ({"pk__lte": end} if end else {})
        if group in _COLUMNS:
            jobs = in_full(database, search, state, ends)
            yield end, _counted(jobs, _COLUMNS[group])
        else:
            found = matching(database, search, state, ends).order_by().count()
            yield end, Counter({_label(group, state): found})
        if end is None:
            return
        behind = end


def _counted(rows: QuerySet[Any], column: str) -> Counter[str]:
    by_name = rows.order_by().values(column).annotate(n=Count("pk"))
    return Counter(dict(by_name.values_list(column, "n")))


def _label(group: Group, state: str) -> str:
    return state if group == "state" else ""
