"""Jobs that somebody looks for, by everything that may be known of them.

Lists show them, operations change them. What is in no index is looked for a stretch at
a time, so that no statement reads a million rows to find a few.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID

from django.db.models import Q, QuerySet

from robust_queue import registry
from robust_queue.models import Job

from . import search_index, search_words
from .search_conditions import has_ended, has_key, id_in, is_run_by, is_run_of
from .selection import KINDS, PENDING, TABLES, states_within

# An id is made just before its row says when: by how much clocks may disagree.
SLACK = timedelta(hours=1)

Bounds: TypeAlias = dict[str, UUID]

TABLE_OF: dict[str, Any] = {
    **TABLES,
    "": Job,
    # No table of their own: they stand in four.
    PENDING: Job,
}
_OUTCOMES = ("finished_execution", "failed_execution")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSearch:
    """What jobs are to have in common. What is not said does not matter.

    A value that makes no sense raises a SearchError.
    """

    state: str | None = None
    queue: str | None = None
    task: str | None = None
    priority: int | None = None
    # Of failed jobs: the whole path of an exception, and in which way they have failed.
    error: str | None = None
    kind: str | None = None
    # The name of one, or the id of one that is alive.
    worker: str | None = None
    recurring: str | None = None
    # One of those that a job may have.
    key: str | None = None
    # From this moment on, and before that.
    enqueued_from: datetime | None = None
    enqueued_until: datetime | None = None
    finished_from: datetime | None = None
    finished_until: datetime | None = None
    # The id of a job, or the whole path of a task, or something in the arguments if
    # whoever asks may look for that.
    text: str | None = None
    in_arguments: bool = False

    def __post_init__(self) -> None:
        search_words.check(self.given)

    # ── Written down ───────────────────────────────────────────────────────────

    @classmethod
    def read(cls, text: str) -> "JobSearch":
        """What ``written`` has written; a SearchError if that was not."""
        return cls(**search_words.read(text))

    @property
    def written(self) -> str:
        """As JSON."""
        return json.dumps(self.given, default=datetime.isoformat)

    @property
    def words(self) -> str:
        """What is looked for, as people say it."""
        return search_words.told(self.given)

    @property
    def discreet_words(self) -> str:
        """Likewise, without what was looked for in arguments."""
        return search_words.told_discreetly(self.given)

    @property
    def given(self) -> dict[str, Any]:
        """What is said, by its name."""
        return {
            k: v for k, v in asdict(self).items() if v is not None and v is not False
        }

    # ── What it takes to find them ─────────────────────────────────────────────

    @property
    def common_state(self) -> str:
        """The state that all of the jobs have, if they have one in common."""
        has_failed = self.error is not None or self.kind is not None
        return self.state or ("failed" if has_failed else "")

    @property
    def states(self) -> tuple[str, ...]:
        """In whose tables the jobs are found; an empty one stands for all jobs."""
        return states_within(self.common_state)

    @property
    def is_unindexed(self) -> bool:
        """Have jobs to be looked at one by one?"""
        return bool(_UNINDEXED & self.given.keys())

    @property
    def is_composite(self) -> bool:
        """Do the jobs stand in several tables?"""
        return len(self.states) > 1

    @property
    def finds_few(self) -> bool:
        """Do keys lead to the jobs?"""
        return self.recurring is not None or self._identity is not None

    @property
    def has_vague_ends(self) -> bool:
        """Does it begin or end somewhere among many jobs that have to be looked at?"""
        return bool(_VAGUE & self.given.keys()) and not self.finds_few

    @property
    def is_by_key(self) -> bool:
        """Is all that is asked for told by a state and by keys?"""
        is_by_text = self.text is not None and self._identity is None
        return not is_by_text and self.given.keys() <= _KEYS

    @property
    def is_long(self) -> bool:
        """Is it looked for a stretch at a time?"""
        is_by_text = bool(self.text) and self._identity is None
        return (self.is_unindexed or is_by_text) and not self.finds_few

    def is_long_in(self, database: str) -> bool:
        """Likewise, unless an index of that database finds the text in arguments."""
        if not self.is_long or not self.in_arguments:
            return self.is_long
        return not is_found_by_index(database, (self.text or "").strip())

    def bounds(self) -> Bounds:
        """Between which ids the jobs are: ids tell when they were made.

        No job was enqueued after it had finished.
        """
        ends = [each for each in (self.enqueued_until, self.finished_until) if each]
        found = {"pk__lt": _id_at(min(ends) + SLACK)} if ends else {}
        if self.enqueued_from:
            found["pk__gte"] = _id_at(self.enqueued_from - SLACK)
        return found

    def narrowed(self, jobs: QuerySet[Any], state: str | None = None) -> QuerySet[Any]:
        """Those of the jobs that match, whose bounds are the caller's business.

        With a state: those of them that have it.
        """
        common = self.common_state if state is None else state
        if common == PENDING:
            jobs = jobs.filter(*((f"{each}__isnull", True) for each in _OUTCOMES))
        elif common:
            jobs = jobs.filter((f"{common}_execution__isnull", False))
        for condition in (*self._conditions(jobs.db), *self._by_key(jobs.db)):
            jobs = jobs.filter(condition)
        return with_text(jobs, self.text or "", in_arguments=self.in_arguments)

    def rows(self, database: str, state: str) -> QuerySet[Any]:
        """Rows of a state's table, narrowed by what their keys tell."""
        rows: QuerySet[Any] = TABLE_OF[state].objects.using(database)
        return rows.filter(*self._by_key(database), **self.bounds())

    def _by_key(self, database: str) -> Iterator[Q]:
        if self._identity:
            yield Q(pk=self._identity)
        if self.recurring is not None:
            yield is_run_of(database, self.recurring)

    def _conditions(self, database: str) -> Iterator[Q]:
        given = self.given
        for name, lookup in _LOOKUPS.items():
            if name in given:
                yield Q((lookup, given[name]))
        if self.kind is not None:
            yield Q(failed_execution__kind=KINDS[self.kind])
        if self.worker is not None:
            yield is_run_by(database, self.worker)
        if self.key is not None:
            yield has_key(self.key)
        for name, moment in (("gte", self.finished_from), ("lt", self.finished_until)):
            if moment:
                yield has_ended(name, moment)

    @property
    def _identity(self) -> UUID | None:
        return id_in((self.text or "").strip())


# These are in no index.
_UNINDEXED = frozenset(
    {"queue", "task", "priority", "error", "kind", "worker", "key"}
    | {"finished_from", "finished_until"}
)

# Ids tell these but for the slack.
_VAGUE = frozenset({"enqueued_from", "enqueued_until"})

_KEYS = frozenset({"state", "recurring", "text", "in_arguments"})

_LOOKUPS = {
    "queue": "queue_name",
    "task": "task_path",
    "priority": "priority",
    "error": "failed_execution__exception_class",
    "enqueued_from": "enqueued_at__gte",
    "enqueued_until": "enqueued_at__lt",
}


def bounded(rows: QuerySet[Any], bounds: Bounds, relation: str = "") -> QuerySet[Any]:
    """Rows within bounds, which a related row with the same key is told as well."""
    if relation:
        bounds = bounds | {f"{relation}__{each}": pk for each, pk in bounds.items()}
    return rows.filter(**bounds)


# ── Conditions ─────────────────────────────────────────────────────────────────


def with_text(jobs: QuerySet[Any], text: str, *, in_arguments: bool) -> QuerySet[Any]:
    """The job of that id, or those with that task, or with that in their arguments."""
    term = text.strip()
    identity = id_in(term)
    if identity is not None:
        return jobs.filter(pk=identity)
    if not term:
        return jobs
    # As they are stored: in JSON, whose letters are all ASCII.
    in_text = Q(arguments__contains=json.dumps(term)[1:-1])
    if in_arguments and is_found_by_index(jobs.db, term):
        # Alone: with another condition beside it, PostgreSQL would not use the index.
        return jobs.filter(in_text)
    by_path = Q(task_path=term)
    return jobs.filter(by_path | in_text if in_arguments else by_path)


def is_found_by_index(database: str, term: str) -> bool:
    """Is it a text in arguments, and no task, and does an index lead to it?"""
    is_path = registry.find(term) is not None
    return not is_path and search_index.finds(database, term)


def _id_at(moment: datetime) -> UUID:
    """No id that was made at that moment or later is smaller."""
    milliseconds = int(moment.timestamp() * 1000)
    return UUID(int=max(milliseconds, 0) << 80)
