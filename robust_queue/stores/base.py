"""The statements in portable SQL, and what each one promises.

Two of the three databases run them as they stand here; PostgreSQL says the same in
single statements. Identifiers are written out: what is sent is what can be read.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from .conflicts import retried
from .records import (
    FAILED_COLUMNS,
    FINISHED_COLUMNS,
    JOB_COLUMNS,
    READY_COLUMNS,
    SCHEDULED_COLUMNS,
    Records,
)
from .rows import Claim, Failed, Finished, NewJob, Outcome, Selection


class Store(Records):
    """The hot statements on one database."""

    def transaction(self) -> AbstractContextManager[Any]:
        """What makes several statements one change."""
        return transaction.atomic(using=self.alias)

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
    ) -> list[Claim]:
        """Take up to ``limit`` ready jobs, in order, for one process.

        Rows that another transaction has locked are passed over, never waited for.
        """

        def change() -> list[Claim]:
            with self.transaction():
                ids = self._lock_ready(selection, limit)
                if not ids:
                    return []
                self._move_to_claimed(ids, process_id, token, now)
                return self._read_claims(ids, process_id, token)

        return retried(self.alias, change)

    def settle(self, outcomes: Sequence[Outcome]) -> set[UUID]:
        """Record outcomes; return the jobs for which the token still matched.

        Whoever lost a claim changes nothing.
        """

        def change() -> set[UUID]:
            with self.transaction():
                held = self._lock_claims(outcomes)
                self._record([each for each in outcomes if each.job_id in held])
                return held

        return retried(self.alias, change) if outcomes else set()

    def release(self, claims: Sequence[Claim | Outcome], *, now: datetime) -> set[UUID]:
        """Give claims back to the queue as if they had never been taken."""

        def change() -> set[UUID]:
            with self.transaction():
                held = self._lock_claims(claims)
                self._move_to_ready("claimed", held, now, attempts="attempts - 1")
                return held

        return retried(self.alias, change) if claims else set()

    def dispatch(self, *, limit: int, now: datetime) -> int:
        """Move up to ``limit`` scheduled jobs whose time has come; return how many."""

        def change() -> int:
            with self.transaction():
                due = self._lock_due(limit, now)
                self._move_to_ready("scheduled", due, now)
                return len(due)

        return retried(self.alias, change)

    # ── Enqueue ────────────────────────────────────────────────────────────────

    def _insert_jobs(self, jobs: Sequence[NewJob]) -> None:
        due = [job for job in jobs if job.is_due]
        later = [job for job in jobs if not job.is_due]
        self._insert("jobs", JOB_COLUMNS, map(self._job_row, jobs))
        self._insert("ready_executions", READY_COLUMNS, map(self._ready_row, due))
        self._insert(
            "scheduled_executions", SCHEDULED_COLUMNS, map(self._scheduled_row, later)
        )

    # ── Claim ──────────────────────────────────────────────────────────────────

    def _lock_ready(self, selection: Selection, limit: int) -> list[UUID]:
        """Lock ready rows queue by queue: only so does every poll follow an index."""
        taken: list[UUID] = []
        for condition, parameters in self._polls(selection):
            taken += self._poll(condition, parameters, limit - len(taken), taken)
            if len(taken) == limit:
                break
        return taken

    def _polls(self, selection: Selection) -> Iterator[tuple[str, Sequence[Any]]]:
        """The condition of each poll, in order; each is asked for only if needed."""
        for pattern in selection.patterns:
            if not pattern.endswith("*"):
                yield ONE_QUEUE, (pattern, pattern)
                continue
            if pattern == "*":
                yield ALL_QUEUES, ()
                if not self._any_pause():
                    continue
            for name in self.queue_names(pattern[:-1]):
                yield ONE_QUEUE, (name, name)

    def _poll(
        self,
        condition: str,
        parameters: Sequence[Any],
        limit: int,
        taken: Sequence[UUID],
    ) -> list[UUID]:
        where = condition
        marks, keys = self._in(taken)
        if taken:
            # Overlapping patterns: this transaction's own locks are not passed over.
            where += f" AND job_id NOT IN ({marks})"
        rows = self._fetch(
            f"SELECT job_id FROM robust_queue_ready_executions {self._hint(condition)}"
            f" WHERE {where} ORDER BY priority, job_id LIMIT %s {self._skip_locked()}",
            (*parameters, *keys, limit),
        )
        return [self.from_id(job_id) for (job_id,) in rows]

    def _move_to_claimed(
        self, ids: Sequence[UUID], process_id: UUID, token: UUID, now: datetime
    ) -> None:
        marks, keys = self._in(ids)
        self._execute(
            "INSERT INTO robust_queue_claimed_executions (job_id, queue_name, priority,"
            " attempts, created_at, process_id, token) SELECT job_id, queue_name,"
            " priority, attempts + 1, %s, %s, %s"
            f" FROM {self._by_key('ready_executions')} WHERE job_id IN ({marks})",
            (self.to_time(now), self.to_id(process_id), self.to_id(token), *keys),
        )
        self._delete("ready_executions", "job_id", ids)

    def _read_claims(
        self, ids: Sequence[UUID], process_id: UUID, token: UUID
    ) -> list[Claim]:
        marks, keys = self._in(ids)
        rows = self._fetch(
            "SELECT claimed.job_id, claimed.attempts, job.task_path, job.backend,"
            " job.queue_name, job.priority, job.arguments, job.enqueued_at,"
            " job.run_after FROM robust_queue_claimed_executions claimed"
            " JOIN robust_queue_jobs job ON job.id = claimed.job_id"
            f" WHERE claimed.job_id IN ({marks})",
            keys,
        )
        claims = [self._claim(row, process_id, token) for row in rows]
        order = {job_id: position for position, job_id in enumerate(ids)}
        return sorted(claims, key=lambda claim: order[claim.job_id])

    # ── Settle, release, dispatch ──────────────────────────────────────────────

    def _lock_claims(self, claims: Sequence[Claim | Outcome]) -> set[UUID]:
        """Lock the claims whose token matches, always in the order of their jobs.

        Two settlers that lock in different orders deadlock.
        """
        tokens = {claim.job_id: claim.token for claim in claims}
        marks, keys = self._in(tokens)
        rows = self._fetch(
            f"SELECT job_id, token FROM {self._by_key('claimed_executions')}"
            f" WHERE job_id IN ({marks}) ORDER BY job_id {self._for_update()}",
            keys,
        )
        found = {self.from_id(job_id): self.from_id(token) for job_id, token in rows}
        return {job_id for job_id in found if found[job_id] == tokens[job_id]}

    def _record(self, outcomes: Sequence[Outcome]) -> None:
        finished = [each for each in outcomes if isinstance(each, Finished)]
        failed = [each for each in outcomes if isinstance(each, Failed)]
        kept = [each for each in finished if each.keep]
        dropped = [each.job_id for each in finished if not each.keep]
        self._insert(
            "finished_executions", FINISHED_COLUMNS, map(self._finished_row, kept)
        )
        self._insert("failed_executions", FAILED_COLUMNS, map(self._failed_row, failed))
        self._drop(dropped)
        self._delete("claimed_executions", "job_id", [each.job_id for each in outcomes])

    def _drop(self, ids: Sequence[UUID]) -> None:
        """Delete jobs that are to leave no trace, with what is kept of their past."""
        if ids:
            marks, keys = self._in(ids)
            self._execute(
                f"DELETE FROM robust_queue_attempts WHERE job_id IN ({marks})", keys
            )
            self._delete("jobs", "id", ids)

    def _lock_due(self, limit: int, now: datetime) -> list[UUID]:
        rows = self._fetch(
            "SELECT job_id FROM robust_queue_scheduled_executions"
            f" {self._hint(DUE)} WHERE {DUE} ORDER BY scheduled_at, priority, job_id"
            f" LIMIT %s {self._skip_locked()}",
            (self.to_time(now), limit),
        )
        return [self.from_id(job_id) for (job_id,) in rows]

    def _move_to_ready(
        self,
        state: str,
        ids: Iterable[UUID],
        now: datetime,
        *,
        attempts: str = "attempts",
    ) -> None:
        ids = list(ids)
        if not ids:
            return
        marks, keys = self._in(ids)
        self._execute(
            f"INSERT INTO robust_queue_ready_executions ({', '.join(READY_COLUMNS)})"
            f" SELECT job_id, queue_name, priority, {attempts}, %s"
            f" FROM {self._by_key(state + '_executions')} WHERE job_id IN ({marks})",
            (self.to_time(now), *keys),
        )
        self._delete(f"{state}_executions", "job_id", ids)

    # ── Queues ─────────────────────────────────────────────────────────────────

    def queue_names(self, prefix: str = "") -> list[str]:
        """Queues that have ready jobs and are not paused, by name.

        A loose index scan: each step jumps to the next name, so that the cost is that
        of the number of queues and not of the number of jobs.
        """
        begins = (len(prefix), prefix)
        rows = self._fetch(LOOSE_INDEX_SCAN, (prefix, *begins, *begins))
        return [name for (name,) in rows]

    def _any_pause(self) -> bool:
        return bool(self._fetch("SELECT 1 FROM robust_queue_pauses LIMIT 1", ()))


# The conditions of a poll. The pauses are asked for in the same statement, so that a
# pause counts from the next poll on and costs no round trip; none of them depends on
# the row, so each is evaluated once.
ALL_QUEUES = "NOT EXISTS (SELECT 1 FROM robust_queue_pauses)"
ONE_QUEUE = (
    "queue_name = %s AND NOT EXISTS"
    " (SELECT 1 FROM robust_queue_pauses pause WHERE pause.queue_name = %s)"
)
DUE = "scheduled_at <= %s"

LOOSE_INDEX_SCAN = """
WITH RECURSIVE names (name) AS (
    SELECT MIN(queue_name) FROM robust_queue_ready_executions WHERE queue_name >= %s
    UNION ALL
    SELECT (
        SELECT MIN(ready.queue_name) FROM robust_queue_ready_executions ready
        WHERE ready.queue_name > names.name
    )
    FROM names WHERE SUBSTR(names.name, 1, %s) = %s
)
SELECT name FROM names
WHERE SUBSTR(name, 1, %s) = %s
    AND name NOT IN (SELECT queue_name FROM robust_queue_pauses)
ORDER BY name
"""
