"""PostgreSQL: every transition is one statement, so one round trip and one commit."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from . import postgresql_statements as sql
from .arrays import arrays, arrays_of, uuids
from .base import Store
from .clearing import State
from .conflicts import retried
from .news import CHANNEL, News
from .postgresql_clearing import CLEAR, JOBS_THAT_ENDED
from .records import (
    FAILED_COLUMNS,
    FINISHED_COLUMNS,
    RETRIED_COLUMNS,
    SNOOZED_COLUMNS,
)
from .rows import Claim, Holding, NewJob, Outcome, Selection, by_kind


class PostgreSQLStore(Store):
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
        rows = ((*self._job_row(job), job.rank, job.is_due) for job in jobs)
        for chunk in self._chunks(rows):
            yield sql.INSERT_MANY, arrays(sql.NEW_JOB_COLUMNS, chunk)

    def _insertion(self, job: NewJob) -> tuple[str, Sequence[Any]]:
        if job.is_due:
            return sql.INSERT_READY, (*self._job_row(job), *self._ready_row(job))
        return sql.INSERT_SCHEDULED, (*self._job_row(job), *self._scheduled_row(job))

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
        parameters = [
            *_pairs(outcomes),
            *arrays_of(FINISHED_COLUMNS, kinds.kept),
            *arrays_of(FAILED_COLUMNS, kinds.failed),
            *arrays_of(RETRIED_COLUMNS, kinds.retried),
            *([dropped] * 3 if kinds.dropped else []),
            *arrays_of(SNOOZED_COLUMNS, kinds.snoozed),
        ]
        found = sql.Kinds(
            kept=bool(kinds.kept),
            failed=bool(kinds.failed),
            retried=bool(kinds.retried),
            dropped=bool(kinds.dropped),
            snoozed=bool(kinds.snoozed),
        )
        return found, parameters

    def release(self, claims: Sequence[Holding], *, now: datetime) -> set[UUID]:
        return self._ids(sql.RELEASE, (*_pairs(claims), now)) if claims else set()

    def dispatch(self, *, limit: int, now: datetime) -> int:
        return len(self._ids(sql.DISPATCH, (now, limit, now)))

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


def _pairs(claims: Sequence[Holding]) -> list[str]:
    return arrays_of(("job_id", "token"), claims)
