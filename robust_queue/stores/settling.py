"""How attempts that are over are written down, in portable SQL."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from robust_queue.flow.keys import split

from .limiting import Limiting
from .locking import Locking
from .records import (
    FAILED_COLUMNS,
    FINISHED_COLUMNS,
    READY_COLUMNS,
    SCHEDULED_COLUMNS,
)
from .rows import Claim, Failed, Holding, Outcome, Snoozed, by_kind
from .turns import TakingTurns

# From the alias of a job and its priority: the number that sorts ascending.
Rank = Callable[[str, int], int]


class HeldRow(NamedTuple):
    """What a claim's row tells that its outcome does not."""

    queue_name: str
    priority: int
    attempts: int
    slot_id: UUID | None
    process_id: UUID

    @property
    def waiting(self) -> Sequence[Any]:
        """What the row of a job that waits again has of it."""
        return self.queue_name, self.priority, self.attempts


class WaitingJob(NamedTuple):
    """What was asked for, as far as it tells where a job waits."""

    id: UUID
    queue_name: str
    backend: str
    priority: int
    partition_key: str
    concurrency_key: str
    unique_key: str


class Settling(Limiting, Locking, TakingTurns):
    """Claims and failures that are locked, and what is recorded of them."""

    def _is_registered(self, process_id: UUID) -> bool:
        """Is there a row of this process? It stays until the transaction ends."""
        rows = self._fetch(
            f"SELECT 1 FROM {self._by_key('processes')} WHERE id = %s"
            f" {self._as_of_now()}",
            (self.to_id(process_id),),
        )
        return bool(rows)

    def _read_claims(
        self, ids: Sequence[UUID], process_id: UUID, token: UUID
    ) -> list[Claim]:
        marks, keys = self._in(ids)
        rows = self._fetch(
            "SELECT claimed.job_id, claimed.attempts, job.task_path, job.backend,"
            " job.queue_name, job.priority, job.arguments, job.enqueued_at,"
            " job.run_after, job.metadata, claimed.priority, job.concurrency_key,"
            " job.unique_key, job.partition_key"
            f" FROM {self._by_key('claimed_executions', 'claimed')}"
            f" JOIN {self._by_key('jobs', 'job')} ON job.id = claimed.job_id"
            f" WHERE claimed.job_id IN ({marks}) {self._as_of_now()}",
            keys,
        )
        claims = [self._claim(row, process_id, token) for row in rows]
        order = {job_id: position for position, job_id in enumerate(ids)}
        return sorted(claims, key=lambda claim: order[claim.job_id])

    def _lock_claims(self, claims: Sequence[Holding]) -> dict[UUID, HeldRow]:
        """Lock the claims whose token matches, always in the order of their jobs.

        Two settlers that lock in different orders deadlock.
        """
        tokens = {claim.job_id: claim.token for claim in claims}
        marks, keys = self._in(tokens)
        rows = self._fetch(
            "SELECT job_id, token, queue_name, priority, attempts, slot_id, process_id"
            f" FROM {self._by_key('claimed_executions')}"
            f" WHERE job_id IN ({marks}) ORDER BY job_id {self._for_update()}",
            keys,
        )
        found = [
            (self.from_id(job_id), self.from_id(token), self._held_row(*rest))
            for job_id, token, *rest in rows
        ]
        return {
            job_id: held for job_id, token, held in found if token == tokens[job_id]
        }

    def _held_row(self, *row: Any) -> HeldRow:
        queue_name, priority, attempts, slot_id, process_id = row
        return HeldRow(
            queue_name,
            priority,
            attempts,
            None if slot_id is None else self.from_id(slot_id),
            self.from_id(process_id),
        )

    def _record_held(self, outcomes: Sequence[Outcome]) -> set[UUID]:
        """Record those of the outcomes whose claims are still held."""
        held = self._lock_claims(outcomes)
        recorded = [each for each in outcomes if each.job_id in held]
        self._record(recorded, held)
        self._free_slots(recorded, held)
        return set(held)

    def _free_slots(
        self, outcomes: Sequence[Outcome], held: dict[UUID, HeldRow]
    ) -> None:
        """Free the slots of claims that are over, unless others share them."""
        keys = {each.job_id: split(each.concurrency_key) for each in outcomes}
        limited = {job_id: held[job_id] for job_id in keys if keys[job_id]}
        if not limited:
            return
        self._lock_semaphores({key for each in keys.values() for key in each})
        going_on = self._slots_going_on(
            {each.slot_id for each in limited.values() if each.slot_id},
            {each.process_id for each in limited.values()},
        )
        # Each slot once, however many of those that shared it are over.
        ended = {row.slot_id or job_id: keys[job_id] for job_id, row in limited.items()}
        freed = [keys for slot, keys in ended.items() if slot not in going_on]
        self._give_back_slots(Counter(key for each in freed for key in each))

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
        self._unlock_ended(outcomes)

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
            (self._retry_row(each, held[each.job_id]) for each in failed),
        )

    def _retry_row(self, failed: Failed, held: HeldRow) -> Sequence[Any]:
        return (
            self.to_id(failed.job_id),
            *held.waiting,
            self.to_time(failed.finished_at),
            self.to_time(failed.retry_at),
        )

    def _snoozed_row(self, snoozed: Snoozed, held: HeldRow) -> Sequence[Any]:
        return (
            self.to_id(snoozed.job_id),
            *held._replace(attempts=held.attempts - 1).waiting,
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

    def _wait_again(
        self, attempts: dict[UUID, int], rank: Rank, now: datetime
    ) -> list[UUID]:
        """Ready rows for jobs that exist, or blocked ones for those that need slots."""
        found = self._jobs_to_wait(attempts)
        allowed = self._allowed_again({job.id: job.unique_key for job in found}, now)
        jobs = [job for job in found if job.id in allowed]
        since = self.to_time(now)
        waiting = {
            job.id: (
                self.to_id(job.id),
                job.queue_name,
                rank(job.backend, job.priority),
                attempts[job.id],
                since,
            )
            for job in jobs
        }
        self._insert(
            "ready_executions",
            READY_COLUMNS,
            (
                (*waiting[job.id], job.partition_key)
                for job in jobs
                if not job.concurrency_key
            ),
        )
        limited = [job for job in jobs if job.concurrency_key]
        self._block((*waiting[job.id], job.concurrency_key) for job in limited)
        return list(waiting)

    def _jobs_to_wait(self, ids: Iterable[UUID]) -> list["WaitingJob"]:
        marks, keys = self._in(ids)
        rows = self._fetch(
            "SELECT id, queue_name, backend, priority, partition_key, concurrency_key,"
            " unique_key"
            f" FROM {self._by_key('jobs')} WHERE id IN ({marks}) {self._as_of_now()}",
            keys,
        )
        return [WaitingJob(self.from_id(job_id), *rest) for job_id, *rest in rows]

    def _allowed_again(
        self, unique_keys: dict[UUID, str], now: datetime
    ) -> Collection[UUID]:
        """All jobs but those of which another one waits or runs, or is before them."""
        wanted = dict[str, UUID]()
        for job_id, key in sorted(unique_keys.items()):
            if key:
                wanted.setdefault(key, job_id)
        locked = self._lock_again(wanted, now) if wanted else set()
        return {each for each, key in unique_keys.items() if not key or each in locked}

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
