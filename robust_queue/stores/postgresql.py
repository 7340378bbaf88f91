"""PostgreSQL: every transition is one statement, so one round trip and one commit."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from robust_queue.flow.keys import split

from . import postgresql_insertions as new
from . import postgresql_statements as sql
from .arrays import arrays, arrays_of, uuids
from .base import Store
from .clearing import State
from .conflicts import retried
from .limiting import Round
from .news import CHANNEL, News
from .postgresql_clearing import CLEAR, JOBS_THAT_ENDED
from .postgresql_measuring import PostgreSQLMeasuring
from .postgresql_slots import FOLLOW, PROMOTE
from .records import (
    BLOCKED_COLUMNS,
    FAILED_COLUMNS,
    FINISHED_COLUMNS,
    RETRIED_COLUMNS,
    SNOOZED_COLUMNS,
)
from .rows import (
    Claim,
    Dispatched,
    Holding,
    Limit,
    LimitedJob,
    NewJob,
    Outcome,
    Selection,
    by_kind,
)
from .slots import Waiter

LIMIT_COLUMNS = ("key", "slots", "expires_at")


class PostgreSQLStore(PostgreSQLMeasuring, Store):
    """Data-modifying common table expressions, and arrays for sets of rows."""

    chunk_bytes = 32 * 1024 * 1024

    @property
    def chunk_rows(self) -> int:
        return 10_000

    def transaction(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def insert(self, jobs: Sequence[NewJob]) -> None:
        statements = list(self._insertions(jobs))

        def change() -> None:
            with self._as_one(len(statements)):
                for statement, parameters in statements:
                    self._execute(statement, parameters)

        retried(self.alias, change)

    def _as_one(self, statements: int) -> AbstractContextManager[Any]:
        """One statement is a transaction by itself; the caller's is only marked."""
        if statements > 1 or self.connection.in_atomic_block:
            return transaction.atomic(using=self.alias, savepoint=False)
        return nullcontext()

    def _insertions(
        self, jobs: Sequence[NewJob]
    ) -> Iterator[tuple[str, Sequence[Any]]]:
        if len(jobs) == 1:
            yield self._insertion(jobs[0])
            return
        if all(job.is_plain for job in jobs):
            plain = ((*self._plain_job_row(job), job.rank, job.is_due) for job in jobs)
            for chunk in self._chunks(plain):
                yield new.INSERT_MANY_PLAIN, arrays(new.PLAIN_COLUMNS, chunk)
            return
        rows = (
            (*self._job_row(job), job.rank, None if job.is_limited else job.is_due)
            for job in jobs
        )
        for chunk in self._chunks(rows):
            yield new.INSERT_MANY, arrays(new.NEW_JOB_COLUMNS, chunk)
        limited = (self._blocked_row(job) for job in jobs if job.is_limited)
        for chunk in self._chunks(limited):
            yield new.INSERT_MANY_BLOCKED, arrays(BLOCKED_COLUMNS, chunk)

    def _insertion(self, job: NewJob) -> tuple[str, Sequence[Any]]:
        if job.is_plain and job.is_due:
            return new.INSERT_PLAIN, (
                *self._plain_job_row(job),
                *self._waiting_row(job),
            )
        if job.is_limited:
            return new.INSERT_BLOCKED, (*self._job_row(job), *self._blocked_row(job))
        if job.is_due:
            return new.INSERT_READY, (*self._job_row(job), *self._ready_row(job))
        return new.INSERT_SCHEDULED, (*self._job_row(job), *self._scheduled_row(job))

    def can_start_anywhere(self, patterns: Sequence[str]) -> bool:
        # There is one order, and so one place in it, only where there is one poll.
        return len(patterns) == 1 and (patterns[0] == "*" or "*" not in patterns[0])

    def claim(
        self,
        selection: Selection,
        *,
        limit: int,
        process_id: UUID,
        token: UUID,
        now: datetime,
        is_likely: bool = True,
    ) -> list[Claim]:
        statement, polled = sql.claim(selection, limit)
        parameters = (*polled, process_id, now, process_id, token)

        def change() -> list[Claim]:
            rows = self._fetch(statement, parameters)
            return [self._claim(row, process_id, token) for row in rows]

        return retried(self.alias, change)

    def settle(self, outcomes: Sequence[Outcome]) -> set[UUID]:
        if not outcomes:
            return set()
        kinds, parameters = self._settled(outcomes)
        return self._ids(sql.settle(kinds), parameters)

    def exchange(
        self,
        outcomes: Sequence[Outcome],
        selection: Selection,
        *,
        limit: int,
        process_id: UUID,
        token: UUID,
        now: datetime,
    ) -> tuple[set[UUID], list[Claim]]:
        kinds, settled = self._settled(outcomes)
        statement, polled = sql.exchange(kinds, selection, limit)
        parameters = (process_id, *settled, *polled, now, process_id, token)

        def change() -> tuple[set[UUID], list[Claim]]:
            *rows, (*_, lost) = self._fetch(statement, parameters)
            claims = [self._claim(row, process_id, token) for row in rows]
            return {each.job_id for each in outcomes}.difference(lost), claims

        return retried(self.alias, change)

    def _settled(self, outcomes: Sequence[Outcome]) -> tuple[sql.Kinds, list[Any]]:
        """Which kinds of outcomes these are, and what there is to record of them."""
        kinds = by_kind(outcomes)
        dropped = uuids(each.job_id for each in kinds.dropped)
        over = (*kinds.kept, *kinds.dropped, *kinds.failed)
        unlocked = [each for each in over if each.unique_key]
        parameters = [
            *_pairs(outcomes),
            *arrays_of(FINISHED_COLUMNS, kinds.kept),
            *arrays_of(FAILED_COLUMNS, kinds.failed),
            *arrays_of(RETRIED_COLUMNS, kinds.retried),
            *([dropped] * 3 if kinds.dropped else []),
            *arrays_of(SNOOZED_COLUMNS, kinds.snoozed),
            *_keys_of(kinds.limited),
            *arrays_of(("unique_key", "job_id"), unlocked),
        ]
        found = sql.Kinds(
            kept=bool(kinds.kept),
            failed=bool(kinds.failed),
            retried=bool(kinds.retried),
            dropped=bool(kinds.dropped),
            snoozed=bool(kinds.snoozed),
            limited=bool(kinds.limited),
            unlocked=bool(unlocked),
        )
        return found, parameters

    def release(self, claims: Sequence[Holding], *, now: datetime) -> set[UUID]:
        limited = [each for each in claims if each.concurrency_key]
        released = super().release(limited, now=now)
        others = [each for each in claims if not each.concurrency_key]
        if others:
            released |= self._ids(sql.RELEASE, (*_pairs(others), now))
        return released

    def dispatch(self, *, limit: int, now: datetime) -> Dispatched:
        parameters = (now, limit, now, now)
        rows = retried(self.alias, lambda: self._fetch(sql.DISPATCH, parameters))
        return Dispatched(len(rows), [LimitedJob(*row) for row in rows if row[-1]])

    # ── Slots ──────────────────────────────────────────────────────────────────

    def _waited_for(self, limits: Sequence[Limit]) -> Sequence[Limit]:
        return limits  # the statement below finds out by itself

    def _promote(self, limits: Sequence[Limit], now: datetime) -> Round:
        parameters = [*arrays_of(LIMIT_COLUMNS, limits), now]
        rows = retried(self.alias, lambda: self._fetch(PROMOTE, parameters))
        return Round(
            moved={job_id: queue for job_id, queue, key, _ in rows if not key},
            several=[
                Waiter(job_id, key, others) for job_id, _, key, others in rows if others
            ],
            is_late=any(job_id is None for job_id, *_ in rows),
        )

    def follow(
        self,
        heads: Sequence[Claim],
        *,
        most: int,
        process_id: UUID,
        token: UUID,
        now: datetime,
    ) -> dict[UUID, list[Claim]]:
        if not heads:
            return {}
        slots = uuids(uuid4() for _ in heads)
        named = *arrays_of(("job_id", "token", "concurrency_key"), heads), slots
        parameters = (process_id, most, *named, now, now, process_id, token)
        followers: dict[UUID, list[Claim]] = {}
        for *row, head in retried(self.alias, lambda: self._fetch(FOLLOW, parameters)):
            claim = self._claim(row, process_id, token)
            followers.setdefault(head, []).append(claim)
        return followers

    def clear(
        self, state: State, ids: Sequence[UUID], *, before: datetime
    ) -> set[UUID]:
        return self._ids(CLEAR[state], (uuids(ids), before)) if ids else set()

    def _jobs_that_ended(self) -> str:
        return JOBS_THAT_ENDED

    def notify(self, queues: Collection[str]) -> None:
        self._tell(News(queues=frozenset(queues)))

    def tell_of_cancellation(self) -> None:
        self._tell(News(is_cancellation=True))

    def tell_of_tuning(self) -> None:
        self._tell(News(is_tuning=True))

    def probe(self, listener: str) -> None:
        self._tell(News(probe=listener))

    def _tell(self, news: News) -> None:
        # Not through Django's cursor: it is no query of the application, which may
        # count its own.
        wrapper = self.connection
        wrapper.ensure_connection()
        with wrapper.wrap_database_errors, wrapper.connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", (CHANNEL, news.payload))

    def _ids(self, statement: str, parameters: Sequence[Any]) -> set[UUID]:
        rows = retried(self.alias, lambda: self._fetch(statement, parameters))
        return {job_id for (job_id,) in rows}

    # The driver knows identifiers and moments.

    def to_id(self, value: UUID) -> Any:
        return value

    def to_time(self, value: datetime | None) -> Any:
        return value

    def from_time(self, value: Any) -> Any:
        if type(value) is not str:
            return value
        # Of each job that is claimed. Django would have the driver call Python for it.
        moment = datetime.fromisoformat(value)
        return moment if settings.USE_TZ else moment.replace(tzinfo=None)


def _keys_of(limited: Sequence[Outcome]) -> list[str]:
    """Each job with each of its keys."""
    rows = [
        (each.job_id, key) for each in limited for key in split(each.concurrency_key)
    ]
    return arrays(("job_id", "key"), rows)


def _pairs(claims: Sequence[Holding]) -> list[str]:
    return arrays_of(("job_id", "token"), claims)
