"""The statements in portable SQL, and what each one promises.

Two of the three databases run them as they stand here; PostgreSQL says the same in
single statements. Identifiers are written out: what is sent is what can be read.
"""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from .attending import Attending
from .chaining import Chaining
from .clearing import Clearing
from .conflicts import retried
from .counting import Counting
from .glancing import Glancing
from .measuring import Measuring
from .operating import Operating
from .records import (
    BLOCKED_COLUMNS,
    JOB_COLUMNS,
    ONE_MORE_ATTEMPT,
    READY_COLUMNS,
    SCHEDULED_COLUMNS,
)
from .rows import Claim, Dispatched, LimitedJob, NewJob, Outcome, Selection


class Store(Clearing, Operating, Chaining, Counting, Measuring, Glancing, Attending):
    """The hot statements on one database."""

    def transaction(self) -> AbstractContextManager[Any]:
        """What makes several statements one change."""
        return transaction.atomic(using=self.alias)

    def can_start_anywhere(self, patterns: Sequence[str]) -> bool:
        """May a selection of these begin behind jobs that were taken before?"""
        return False

    # ── Transitions ────────────────────────────────────────────────────────────

    def insert(self, jobs: Sequence[NewJob]) -> None:
        """Insert jobs with their ready or scheduled rows, all of them or none.

        The one change that may be part of the caller's transaction. Without a savepoint
        there, which would cost two round trips: if a statement fails, the caller's
        transaction is marked as broken.
        """

        def change() -> None:
            with transaction.atomic(using=self.alias, savepoint=False):
                self._insert_jobs(jobs)

        retried(self.alias, change)

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
        """Take up to ``limit`` ready jobs, in order, for one registered process.

        Where none is likely to be there, a cheap look comes first.

        Rows that another transaction has locked are passed over, never waited for. A
        process that was struck off gets nothing: its row is locked together with the
        jobs, so that no claim of it can appear once its claims have been looked for.
        """

        def change() -> list[Claim]:
            if self._looks_first(is_likely=is_likely) and not self._may_be_ready():
                return []
            with self.transaction():
                ids = self._lock_ready(selection, limit)
                if not ids or not self._is_registered(process_id):
                    return []
                return self._take_ready(ids, process_id, token, now)

        return retried(self.alias, change)

    def settle(self, outcomes: Sequence[Outcome]) -> set[UUID]:
        """Record outcomes; return the jobs for which the token still matched.

        A failure that is to be retried becomes an earlier attempt, and its job waits
        for that moment. Whoever lost a claim changes nothing.
        """

        def change() -> set[UUID]:
            with self.transaction():
                return self._record_held(outcomes)

        return retried(self.alias, change) if outcomes else set()

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
        """Settle and claim in one transaction, for the price of one commit.

        The row of the process is locked before its claims are, because whoever strikes
        it off goes the same way: in any other order the two could wait for each other.
        """

        def change() -> tuple[set[UUID], list[Claim]]:
            with self.transaction():
                is_registered = self._is_registered(process_id)
                held = self._record_held(outcomes)
                ids = self._lock_ready(selection, limit) if is_registered else []
                return held, self._take_ready(ids, process_id, token, now)

        return retried(self.alias, change)

    def dispatch(self, *, limit: int, now: datetime) -> Dispatched:
        """Move up to ``limit`` scheduled jobs whose time has come.

        Those that need slots are blocked; whoever called sees to their promotion.
        """

        def change() -> Dispatched:
            with self.transaction():
                due = self._lock_due(limit, now)
                limited = self._block_limited(due, now)
                blocked = {each.job_id for each in limited}
                ready = [each for each in due if each not in blocked]
                self._move_to_ready("scheduled", ready, now)
                return Dispatched(len(due), limited)

        return retried(self.alias, change)

    # ── Survey ─────────────────────────────────────────────────────────────────

    def survey(self) -> tuple[datetime | None, frozenset[str]]:
        """When the first of the scheduled jobs is due, and which tables have rows."""
        exist = (
            f"EXISTS (SELECT 1 FROM robust_queue_{each}{OPEN.get(each, '')})"
            for each in SURVEYED
        )
        ((moment, *found),) = self._fetch(
            "SELECT (SELECT scheduled_at FROM robust_queue_scheduled_executions"
            f" {self._hint(DUE)} ORDER BY scheduled_at, priority, job_id LIMIT 1),"
            f" {', '.join(exist)}",
            (),
        )
        present = zip(SURVEYED, found, strict=True)
        return self.from_time(moment), frozenset(
            name for name, is_so in present if is_so
        )

    # ── News ───────────────────────────────────────────────────────────────────

    def notify(self, queues: Collection[str]) -> None:
        """Tell whoever listens that these queues have ready jobs; none means any."""

    def tell_of_cancellation(self) -> None:
        """Tell whoever listens that somebody has cancelled a job that runs."""

    def tell_of_tuning(self) -> None:
        """Tell whoever listens that somebody wants a worker to change."""

    def probe(self, listener: str) -> None:
        """Send something that only this listener heeds, to see whether it hears."""

    # ── Enqueue ────────────────────────────────────────────────────────────────

    def _insert_jobs(self, jobs: Sequence[NewJob]) -> None:
        due = [job for job in jobs if job.is_due and not job.is_limited]
        limited = [job for job in jobs if job.is_limited]
        later = [job for job in jobs if not job.is_due]
        self._insert("jobs", JOB_COLUMNS, map(self._job_row, jobs))
        self._insert("ready_executions", READY_COLUMNS, map(self._ready_row, due))
        self._insert(
            "scheduled_executions", SCHEDULED_COLUMNS, map(self._scheduled_row, later)
        )
        self._insert(
            "blocked_executions", BLOCKED_COLUMNS, map(self._blocked_row, limited)
        )

    # ── Claim ──────────────────────────────────────────────────────────────────

    def _looks_first(self, *, is_likely: bool) -> bool:
        """Is a look cheaper than a transaction that finds nothing?"""
        # One that has begun may see only what was there by then.
        return not is_likely and not self.connection.in_atomic_block

    def _may_be_ready(self) -> bool:
        look = "SELECT 1 FROM robust_queue_ready_executions LIMIT 1"
        return bool(self._fetch(look, ()))

    def _take_ready(
        self, ids: Sequence[UUID], process_id: UUID, token: UUID, now: datetime
    ) -> list[Claim]:
        if not ids:
            return []
        self._move_to_claimed(ids, process_id, token, now)
        return self._read_claims(ids, process_id, token)

    def _move_to_claimed(
        self, ids: Sequence[UUID], process_id: UUID, token: UUID, now: datetime
    ) -> None:
        marks, keys = self._in(ids)
        self._execute(
            "INSERT INTO robust_queue_claimed_executions (job_id, queue_name, priority,"
            " attempts, created_at, process_id, token) SELECT job_id, queue_name,"
            f" priority, {ONE_MORE_ATTEMPT}, %s, %s, %s"
            f" FROM {self._by_key('ready_executions')} WHERE job_id IN ({marks})",
            (self.to_time(now), self.to_id(process_id), self.to_id(token), *keys),
        )
        self._delete("ready_executions", "job_id", ids)

    # ── Dispatch ───────────────────────────────────────────────────────────────

    def _lock_due(self, limit: int, now: datetime) -> list[UUID]:
        rows = self._fetch(
            "SELECT job_id FROM robust_queue_scheduled_executions"
            f" {self._hint(DUE)} WHERE {DUE} ORDER BY scheduled_at, priority, job_id"
            f" LIMIT %s {self._skip_locked()}",
            (self.to_time(now), limit),
        )
        return [self.from_id(job_id) for (job_id,) in rows]

    def _block_limited(self, due: Sequence[UUID], now: datetime) -> list[LimitedJob]:
        """Block those of the due jobs that need slots, and return them."""
        if not due:
            return []
        marks, keys = self._in(due)
        rows = self._fetch(
            "SELECT job_id, due.queue_name, due.priority, due.attempts, job.task_path,"
            " job.backend, job.concurrency_key"
            f" FROM {self._by_key('scheduled_executions', 'due')}"
            f" JOIN {self._by_key('jobs', 'job')} ON job.id = due.job_id"
            f" WHERE job_id IN ({marks}) AND job.concurrency_key <> ''",
            keys,
        )
        since = self.to_time(now)
        self._block((*row[:4], since, row[-1]) for row in rows)
        limited = [
            LimitedJob(self.from_id(row[0]), row[4], row[5], row[1], row[6])
            for row in rows
        ]
        ids = [each.job_id for each in limited]
        self._delete("scheduled_executions", "job_id", ids)
        return limited


DUE = "scheduled_at <= %s"
# What is mostly empty, and has to be looked after where it is not.
SURVEYED = (
    "blocked_executions",
    "cancellations",
    "named_requests",
    "operations",
    "pauses",
    "processes",
    "rate_buckets",
    "semaphores",
    "task_pauses",
    "tunings",
    "unique_locks",
)
# Of some tables only these rows are anybody's business: what is over stays for a while,
# and workers of our own end by themselves what takes too long.
OPEN = {
    "operations": " WHERE finished_at IS NULL",
    "processes": " WHERE kind = 'External'",
}
