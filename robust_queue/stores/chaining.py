"""Chains: claimed jobs of one key that run one after the other, in one slot.

A key with a limit of one would otherwise cost each job a release, a promotion and a
claim. The first of a chain brings the slot along. It goes on to the others without
being counted, until the last of them is over.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction

from .conflicts import retried
from .limiting import NEXT_OF_KEY
from .polling import ONE_QUEUE
from .records import ONE_MORE_ATTEMPT, rank
from .rows import Claim, Holding
from .settling import HeldRow, Settling

# Of the jobs that are next: those that may follow a job of their queue.
_MAY_FOLLOW = f"{ONE_QUEUE} AND other_keys = ''"


class Chaining(Settling):
    """Claims what may follow a claim, and gives back what did not."""

    def follow(
        self,
        heads: Sequence[Claim],
        *,
        most: int,
        process_id: UUID,
        token: UUID,
        now: datetime,
    ) -> dict[UUID, list[Claim]]:
        """Claim up to ``most`` of the next blocked jobs for each of these claims.

        Each has one key, which none of the others has. Only jobs of its own queue may
        follow a claim, since those of others may not be this worker's business, and
        only while it is held.
        """

        def change() -> dict[UUID, list[Claim]]:
            with transaction.atomic(using=self.alias):
                if not self._is_registered(process_id):
                    return {}
                held = self._lock_claims(heads)
                own = [each for each in heads if each.job_id in held]
                ids = {each.job_id: self._lock_next(each, most, now) for each in own}
                behind = {head: found for head, found in ids.items() if found}
                for head, found in behind.items():
                    # Not its own id: it may be claimed again while others go on.
                    slot = held[head].slot_id or uuid4()
                    self._chain(
                        head, slot, found, process_id=process_id, token=token, now=now
                    )
                return {
                    head: self._read_claims(found, process_id, token)
                    for head, found in behind.items()
                }

        return retried(self.alias, change) if heads else {}

    def _lock_next(self, head: Claim, most: int, now: datetime) -> list[UUID]:
        queue = head.queue_name
        rows = self._fetch(
            "SELECT job_id FROM (SELECT job_id, queue_name, other_keys"
            f" FROM robust_queue_blocked_executions {self._hint(NEXT_OF_KEY)}"
            f" WHERE {NEXT_OF_KEY} ORDER BY priority, job_id LIMIT %s) line"
            f" WHERE {_MAY_FOLLOW}",
            (head.concurrency_key, most, queue, queue, self.to_time(now)),
        )
        ids = [self.from_id(job_id) for (job_id,) in rows]
        still_blocked = self._lock_blocked(ids)
        return [each for each in ids if each in still_blocked]

    def _chain(
        self,
        head: UUID,
        slot: UUID,
        ids: Sequence[UUID],
        *,
        process_id: UUID,
        token: UUID,
        now: datetime,
    ) -> None:
        marks, keys = self._in(ids)
        shared, moment = self.to_id(slot), self.to_time(now)
        self._execute(
            "INSERT INTO robust_queue_claimed_executions (job_id, queue_name, priority,"
            " attempts, created_at, process_id, token, slot_id) SELECT job_id,"
            f" queue_name, {rank('priority')}, {ONE_MORE_ATTEMPT}, %s, %s, %s, %s"
            f" FROM {self._by_key('blocked_executions')} WHERE job_id IN ({marks})",
            (moment, self.to_id(process_id), self.to_id(token), shared, *keys),
        )
        self._delete("blocked_executions", "job_id", ids)
        self._execute(
            "UPDATE robust_queue_claimed_executions SET slot_id = %s WHERE job_id = %s",
            (shared, self.to_id(head)),
        )

    def release(self, claims: Sequence[Holding], *, now: datetime) -> set[UUID]:
        """Give claims back to the queue as if they had never been taken.

        A slot goes back with its claim. Of several that share one, one keeps it, unless
        somebody goes on with it. The others are blocked as they were.
        """

        def change() -> set[UUID]:
            with transaction.atomic(using=self.alias):
                held = self._lock_claims(claims)
                rows = self._without_slot(held, now)
                self._block(rows)
                blocked = {self.from_id(row[0]) for row in rows}
                self._delete("claimed_executions", "job_id", list(blocked))
                ready = [each for each in held if each not in blocked]
                self._move_to_ready("claimed", ready, now, attempts="attempts - 1")
                return set(held)

        return retried(self.alias, change) if claims else set()

    def _without_slot(
        self, held: Mapping[UUID, HeldRow], now: datetime
    ) -> list[Sequence[Any]]:
        """The rows of those that shared a slot and cannot take it along."""
        shared = {job_id: row for job_id, row in held.items() if row.slot_id}
        if not shared:
            return []
        keys = {job.id: job.concurrency_key for job in self._jobs_to_wait(shared)}
        self._lock_semaphores(set(keys.values()))
        taken = self._slots_going_on(
            {row.slot_id for row in shared.values() if row.slot_id},
            {row.process_id for row in shared.values()},
            besides=held,
        )
        rows = list[Sequence[Any]]()
        for job_id, row in sorted(shared.items(), key=_by_priority):
            if row.slot_id in taken and job_id in keys:
                back = row._replace(attempts=row.attempts - 1).waiting
                since = self.to_time(now)
                rows.append((self.to_id(job_id), *back, since, keys[job_id]))
            elif row.slot_id:
                taken.add(row.slot_id)
        return rows


def _by_priority(item: tuple[UUID, HeldRow]) -> tuple[int, UUID]:
    job_id, row = item
    return row.priority, job_id
