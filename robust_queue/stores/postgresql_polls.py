"""Which ready jobs come next, as steps of a statement of PostgreSQL."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .looks import Look, Turn, looks
from .polling import ALL_QUEUES, ANY_PAUSE, LOOSE_INDEX_SCAN, ONE_QUEUE
from .postgresql_turns import HEADS, TURNS, of_turn
from .rows import Selection

_POLL = """poll{position} AS MATERIALIZED (
    SELECT job_id, {position} AS position, '' AS name
    FROM robust_queue_ready_executions
    WHERE {condition}{untaken}
    ORDER BY priority, job_id LIMIT {limit}
    FOR UPDATE SKIP LOCKED
)"""

# Rows are locked one by one as they are asked for, so never more than the limit.
_POLL_NAMES = """poll{position} AS MATERIALIZED (
    SELECT ready.job_id, {position} AS position, names.name
    FROM ({names}) names
    CROSS JOIN LATERAL (
        SELECT job_id FROM robust_queue_ready_executions
        WHERE queue_name = names.name{untaken}
        ORDER BY priority, job_id LIMIT {limit}
        FOR UPDATE SKIP LOCKED
    ) ready
    WHERE {condition}
    LIMIT {limit}
)"""


class Picked(NamedTuple):
    """The steps that poll the queues; the last one is called ``picked``."""

    steps: str
    parameters: list[Any]
    # All that is picked is in the order of priority and job: nothing else counts.
    is_in_one_order: bool


def picked(selection: Selection, limit: int) -> Picked:
    """The steps that poll these queues."""
    polls = list(_polls(selection) if selection.is_plain else _looks(selection))
    # Of queues that are all left out there is nothing to pick.
    polls = polls or [(_POLL, "FALSE", ())]
    shape = tuple(poll[:2] for poll in polls)
    parameters = [value for *_, given in polls for value in given]
    is_in_one_order = len(polls) == 1 and polls[0][0] is _POLL
    return Picked(_steps(shape, limit), parameters, is_in_one_order)


@lru_cache(maxsize=256)
def _steps(polls: tuple[tuple[str, str], ...], limit: int) -> str:
    steps = [
        template.format(
            position=position,
            condition=condition,
            names=LOOSE_INDEX_SCAN,
            untaken=_untaken(position),
            limit=_rest(limit, position),
            most=limit,
        )
        for position, (template, condition) in enumerate(polls)
    ]
    union = " UNION ALL ".join(f"SELECT * FROM poll{i}" for i in range(len(polls)))
    return ", ".join([*steps, f"picked AS ({union})"])


# Jobs that were taken leave something behind in the index, for as long as the oldest
# transaction of the server might see them. To begin behind it spares a scan of that.
_FROM_START = " AND (priority, job_id) >= (%s::smallint, %s::uuid)"


def _polls(selection: Selection) -> Iterator[tuple[str, str, Sequence[Any]]]:
    begin, start = (_FROM_START, selection.start) if selection.start else ("", ())
    now = selection.now
    for pattern in selection.patterns:
        prefix = pattern[:-1]
        begins = (len(prefix), prefix)
        if not pattern.endswith("*"):
            yield _POLL, ONE_QUEUE + begin, (pattern, pattern, now, *start)
        elif prefix:
            yield _POLL_NAMES, "TRUE", (prefix, *begins, *begins, now)
        else:
            # All at once unless something is paused, then queue by queue: which of
            # the two runs is decided by the server, within the same statement.
            yield _POLL, ALL_QUEUES + begin, (now, *start)
            # It takes the server longer to plan than all of the rest.
            if not selection.expects_no_pause:
                yield _POLL_NAMES, ANY_PAUSE, (prefix, *begins, *begins, now, now)


_OTHERS = "names.name <> ALL (%s::text[])"
# Is any job ready in these queues? The first of each is asked for in order, so that no
# statistics of yesterday talk the server out of the index.
_ANY_APART = """EXISTS (
    SELECT 1 FROM unnest(%s::text[]) AS apart (name) WHERE (
        SELECT job_id FROM robust_queue_ready_executions
        WHERE queue_name = apart.name ORDER BY priority, job_id LIMIT 1
    ) IS NOT NULL
)"""
_AS_ONE = f"{ALL_QUEUES} AND NOT {_ANY_APART}"
_APART = f"{_OTHERS} AND ({ANY_PAUSE} OR {_ANY_APART})"


def _looks(selection: Selection) -> Iterator[tuple[str, str, Sequence[Any]]]:
    """Likewise where the partitions of some queues take turns, or some are left out."""
    for look in looks(selection):
        if isinstance(look, Turn):
            yield TURNS, "", of_turn(look)
        elif not look.without:
            yield from _polls(Selection((look.pattern,), now=look.now))
        else:
            yield from _looks_without(look, selection)


def _looks_without(
    look: Look, selection: Selection
) -> Iterator[tuple[str, str, Sequence[Any]]]:
    prefix, now, apart = look.pattern[:-1], look.now, list(look.without)
    begins = (len(prefix), prefix)
    names = (prefix, *begins, *begins, now, apart)
    if prefix:
        yield _POLL_NAMES, _OTHERS, names
    elif look.expects_nothing_apart:
        # All at once while nothing is ready in those that are apart. As with pauses,
        # which of the two runs is decided within the statement, by one snapshot.
        begin, start = (_FROM_START, selection.start) if selection.start else ("", ())
        yield _POLL, _AS_ONE + begin, (now, apart, *start)
        yield HEADS, _APART, (*names, now, apart)
    else:
        yield HEADS, _OTHERS, names


def _untaken(position: int) -> str:
    """Patterns may overlap, and a statement's own locks are not passed over."""
    taken = " UNION ALL ".join(f"SELECT job_id FROM poll{i}" for i in range(position))
    return f" AND job_id <> ALL (ARRAY({taken}))" if taken else ""


def _rest(limit: int, position: int) -> str:
    """What is left of the limit, as a number that the planner cannot see.

    It would sort a whole queue rather than follow its index if it took the queue for
    smaller than the limit, as it does in a burst: statistics then tell of empty tables.
    """
    taken = [f" - (SELECT count(*) FROM poll{i})" for i in range(position)]
    return f"(SELECT {limit:d}){''.join(taken)}"
