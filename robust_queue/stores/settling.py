"""How attempts that are over are written down, in portable SQL."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from .polling import Polling
from .records import (
    FAILED_COLUMNS,
    FINISHED_COLUMNS,
    READY_COLUMNS,
    SCHEDULED_COLUMNS,
)
from .rows import Failed, Holding, Outcome, Snoozed, by_kind

# From the alias of a job and its priority: the number that sorts ascending.
Rank = Callable[[str, int], int]


class HeldRow(NamedTuple):
    """What a claim's row tells that its outcome does not."""

    queue_name: str
    priority: int
    attempts: int


class Settling(Polling):
    """Claims and failures that are locked, and what is recorded of them."""

    def _lock_claims(self, claims: Sequence[Holding]) -> dict[UUID, HeldRow]:
        """Lock the claims whose token matches, always in the order of their jobs.

        Two settlers that lock in different orders deadlock.
        """
        tokens = {claim.job_id: claim.token for claim in claims}
        marks, keys = self._in(tokens)
        rows = self._fetch(
            "SELECT job_id, token, queue_name, priority, attempts"
            f" FROM {self._by_key('claimed_executions')}"
            f" WHERE job_id IN ({marks}) ORDER BY job_id {self._for_update()}",
            keys,
        )
        found = [
            (self.from_id(job_id), self.from_id(token), HeldRow(*rest))
            for job_id, token, *rest in rows
        ]
        return {
            job_id: held for job_id, token, held in found if token == tokens[job_id]
        }

    def _record_held(self, outcomes: Sequence[Outcome]) -> set[UUID]:
        """Record those of the outcomes whose claims are still held."""
        held = self._lock_claims(outcomes)
        self._record([each for each in outcomes if each.job_id in held], held)
        return set(held)

    def _record(self, outcomes: Sequence[Outcome], held: dict[UUID, HeldRow]) -> None:
        kinds = by_kind(outcomes)
        self._insert(
            "finished_executions", FINISHED_COLUMNS, map(self._finished_row, kinds.kept)
        )
        self._insert(
            "failed_executions", FAILED_COLUMNS, map(self._failed_row, kinds.failed)
        )
        self._retry_later(kinds.retried, held)
        self._insert(
            "scheduled_executions",
            SCHEDULED_COLUMNS,
            (self._snoozed_row(each, held[each.job_id]) for each in kinds.snoozed),
        )
        self._drop([each.job_id for each in kinds.dropped])
        self._delete("claimed_executions", "job_id", [each.job_id for each in outcomes])

    def _retry_later(self, failed: Sequence[Failed], held: dict[UUID, HeldRow]) -> None:
        self._insert(
            "attempts",
            FAILED_COLUMNS,
            map(self._failed_row, failed),
            otherwise=self._unless_there(),
        )
        self._insert(
            "scheduled_executions",
            SCHEDULED_COLUMNS,
            (self._waiting_row(each, held[each.job_id]) for each in failed),
        )

    def _waiting_row(self, failed: Failed, held: HeldRow) -> Sequence[Any]:
        return (
            self.to_id(failed.job_id),
            *held,
            self.to_time(failed.finished_at),
            self.to_time(failed.retry_at),
        )

    def _snoozed_row(self, snoozed: Snoozed, held: HeldRow) -> Sequence[Any]:
        return (
            self.to_id(snoozed.job_id),
            *held._replace(attempts=held.attempts - 1),
            self.to_time(snoozed.finished_at),
            self.to_time(snoozed.until),
        )

    def _drop(self, ids: Sequence[UUID]) -> None:
        """Delete jobs that are to leave no trace, with what is kept of their past."""
        for past in ("attempts", "isolated_runs"):
            self._delete(past, "job_id", ids)
        self._delete("jobs", "id", ids)

    # ── The operator's retry ───────────────────────────────────────────────────

    def _lock_failed(self, ids: Sequence[UUID]) -> dict[UUID, int]:
        """Lock the failures of these jobs; return how often each was attempted."""
        marks, keys = self._in(ids)
        rows = self._fetch(
            f"SELECT job_id, attempts FROM {self._by_key('failed_executions')}"
            f" WHERE job_id IN ({marks}) ORDER BY job_id {self._for_update()}",
            keys,
        )
        return {self.from_id(job_id): attempts for job_id, attempts in rows}

    def _ready_again(
        self, attempts: dict[UUID, int], rank: Rank, now: datetime
    ) -> list[UUID]:
        """Ready rows for jobs that exist, made from what was asked for."""
        marks, keys = self._in(attempts)
        rows = self._fetch(
            f"SELECT id, queue_name, backend, priority FROM {self._by_key('jobs')}"
            f" WHERE id IN ({marks}) {self._as_of_now()}",
            keys,
        )
        jobs = [(self.from_id(job_id), *rest) for job_id, *rest in rows]
        self._insert(
            "ready_executions",
            READY_COLUMNS,
            (
                (
                    self.to_id(job_id),
                    queue_name,
                    rank(backend, priority),
                    attempts[job_id],
                    self.to_time(now),
                )
                for job_id, queue_name, backend, priority in jobs
            ),
        )
        return [job_id for job_id, *_ in jobs]

    def _keep_failures(self, ids: Sequence[UUID]) -> None:
        """Move failures to the attempts that another one follows."""
        if not ids:
            return
        marks, keys = self._in(ids)
        columns = ", ".join(FAILED_COLUMNS)
        self._execute(
            f"INSERT INTO robust_queue_attempts ({columns}) SELECT {columns}"
            f" FROM {self._by_key('failed_executions')} WHERE job_id IN ({marks})"
            f" {self._unless_there()}",
            keys,
        )
        self._delete("failed_executions", "job_id", ids)
