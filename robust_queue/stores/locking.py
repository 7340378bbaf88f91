"""Who holds which unique key, in portable SQL.

A lock is a row, its key the primary key, so that no two jobs ever hold it. A lock of a
period has a moment at which it expires and is let go by nobody before. Every other one
goes in the transaction in which its job comes to its end, or begins.

Waiting rows are locked before locks are, and locks in the order of their keys: in any
other order an enqueuer and somebody who discards could wait for each other.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from .conflicts import retried
from .polling import Polling
from .rows import Failed, Finished, Holder, NewLock, Outcome

LOCKS = "robust_queue_unique_locks"
AT_ONCE = 1_000
# Jobs in these tables have not ended.
PENDING = ("claimed", "ready", "scheduled", "blocked")

# In a way that planners do not see through: nearly all locks are like that, but without
# statistics a few are expected, and the index on their ends would be read as a whole.
OF_NO_PERIOD = "CASE WHEN {}.expires_at IS NULL THEN 1 ELSE 0 END = 1"

_STATE = " ".join(
    f"WHEN EXISTS (SELECT 1 FROM robust_queue_{state}_executions found"
    f" WHERE found.job_id = held.job_id) THEN '{state}'"
    for state in PENDING
)


class Locking(Polling):
    """Takes unique keys, tells who holds them, and lets go of them."""

    # Does the attempt to take a key that is held keep its holder from letting go of it?
    # Then it is not tried in a transaction of the caller, which may take its time.
    locks_what_it_meets = False
    # Does the number of rows that were inserted tell whether keys were taken?
    _counts_insertions = True

    def lock_keys(self, locks: Sequence[NewLock]) -> bool:
        """Take those of the keys that nobody holds; True if that is sure to be all.

        To be called in the order of the keys: two who lock in different orders
        deadlock. Waits for whoever has taken or let go of one of them and has not
        committed yet. Part of a transaction.
        """
        columns = (self._quoted_key, "job_id", "expires_at")
        marks = f"({', '.join(['%s'] * len(columns))})"
        inserted = 0
        for chunk in self._chunks(map(self._lock_row, locks)):
            inserted += self._changed(
                f"INSERT INTO {LOCKS} ({', '.join(columns)}) VALUES"
                f" {', '.join([marks] * len(chunk))} {self._unless_locked()}",
                [value for row in chunk for value in row],
            )
        return self._counts_insertions and inserted == len(locks)

    def holders(
        self, keys: Collection[str], *, keep: bool = False
    ) -> dict[str, Holder]:
        """Who holds these keys at this moment.

        With ``keep`` nobody lets go of them before the transaction has ended.
        """
        found: dict[str, Holder] = {}
        for some in _portions(keys):
            if keep:
                self._hold(some)
            found |= self._holders(some)
        return found

    def _holders(self, keys: Sequence[str]) -> dict[str, Holder]:
        rows = self._fetch(
            f"SELECT held.key, held.job_id, held.expires_at, CASE {_STATE} ELSE '' END"
            f" FROM {self._by_key('unique_locks', 'held')}"
            f" WHERE held.key IN ({_marks(keys)}) {self._as_committed()}",
            keys,
        )
        return {
            key: Holder(self.from_id(job_id), self.from_time(expires_at), state)
            for key, job_id, expires_at, state in rows
        }

    def take_over(self, lock: NewLock, former: UUID) -> bool:
        """Hand a key from one job to another; False if that one has it no more.

        The row itself stays: where one is deleted and inserted again, InnoDB lets those
        who wait for it wait for each other.
        """
        return bool(
            self._changed(
                f"UPDATE {LOCKS} SET job_id = %s, expires_at = %s"
                f" WHERE {self._quoted_key} = %s AND job_id = %s",
                (*self._lock_row(lock)[1:], lock.key, self.to_id(former)),
            )
        )

    def evict(self, holders: Mapping[str, UUID]) -> None:
        """Free these keys, if they are still held by those jobs."""
        if holders:
            self._hold(holders)
            self._unlock(holders, holders.values(), where="")

    def unlock(self, key: str, job_id: UUID) -> None:
        """Let go of a key, in a transaction of its own. One of a period stays."""
        retried(self.alias, lambda: self._unlock([key], [job_id]))

    def forget_expired(self, *, limit: int, now: datetime) -> int:
        """Delete so many locks at most whose time is over; return how many."""
        return self._forget(
            f"SELECT held.key FROM {LOCKS} held {self._hint(EXPIRED)} WHERE {EXPIRED}"
            " ORDER BY held.expires_at LIMIT %s",
            (self.to_time(now), limit),
            now,
        )

    def forget_ended(self, start: str, *, limit: int, now: datetime) -> int:
        """Delete locks whose job has ended or is gone, among so many from a key on."""
        return self._forget(
            f"SELECT held.key FROM (SELECT held.key, held.job_id FROM {LOCKS} held"
            f" WHERE held.key >= %s AND {OF_NO_PERIOD.format('held')} ORDER BY held.key"
            f" LIMIT %s) held WHERE CASE {_STATE} ELSE '' END = ''",
            (start, limit),
            now,
        )

    def _forget(self, look: str, parameters: Sequence[Any], now: datetime) -> int:
        """Delete what a look has found, unless it has changed or is in use meanwhile.

        A job may just have failed and be retried, or a key be taken over.
        """

        def change() -> int:
            with transaction.atomic(using=self.alias):
                left = self.holders(self._lock_free(keys))
                stale = {k: v.job_id for k, v in left.items() if v.is_stale(now)}
                self.evict(stale)
                return len(stale)

        keys = [key for (key,) in self._fetch(look, parameters)]
        return retried(self.alias, change) if keys else 0

    # ── Parts of other changes ─────────────────────────────────────────────────

    def _unlock_ended(self, outcomes: Iterable[Outcome]) -> None:
        """Let go of the keys of jobs that have come to their end.

        Of those that somebody keeps in an open transaction nothing is waited for: all
        other outcomes would wait as well. What is left over then is for the next one.
        """
        ended = [each for each in outcomes if each.unique_key and is_end(each)]
        keys = [each.unique_key for each in ended]
        if keys and self.connection.features.has_select_for_update_skip_locked:
            keys = self._lock_free(keys)
        if keys:
            self._unlock(keys, [each.job_id for each in ended])

    def _unlock_jobs(self, ids: Sequence[UUID]) -> None:
        """Let go of the keys of jobs that will not run, whichever those are."""
        if not ids:
            return
        marks, given = self._in(ids)
        rows = self._fetch(
            f"SELECT held.key FROM {LOCKS} held {self._hint(OF_JOBS)}"
            f" WHERE held.job_id IN ({marks}) AND {OF_NO_PERIOD.format('held')}"
            f" ORDER BY held.key {self._for_update()}",
            given,
        )
        if rows:
            self._unlock([key for (key,) in rows], ids)

    def _lock_again(self, wanted: Mapping[str, UUID], now: datetime) -> set[UUID]:
        """Take keys for jobs that are to run once more; return who may.

        Those may not of which another one waits or runs. Where a period goes on, there
        is nothing to be taken, and nothing to wait for.
        """
        # What is left over of its own may be about to be swept away.
        self._unlock_jobs(list(wanted.values()))
        locks = [NewLock(key, wanted[key]) for key in sorted(wanted)]
        holders: dict[str, Holder] = {}
        while missing := [each for each in locks if each.key not in holders]:
            # Whoever had a key has let go of it, if it is still missing behind this.
            self.lock_keys(missing)
            holders |= self.holders([each.key for each in missing])
        return {
            each.job_id
            for each in locks
            if self._may_again(each, holders[each.key], now)
        }

    def _may_again(self, lock: NewLock, holder: Holder, now: datetime) -> bool:
        if holder.job_id == lock.job_id:
            return True
        if holder.is_stale(now):
            return self.take_over(lock, holder.job_id)
        return not holder.state

    def _hold(self, keys: Collection[str]) -> None:
        """Lock the rows of these keys, in their order, until the transaction ends."""
        self._lock_rows(keys, self._for_update())

    def _lock_free(self, keys: Collection[str]) -> list[str]:
        """Likewise, but pass over those that somebody else has locked."""
        return [key for (key,) in self._lock_rows(keys, self._skip_locked())]

    def _lock_rows(self, keys: Collection[str], how: str) -> list[Any]:
        return self._fetch(
            f"SELECT held.key FROM {self._by_key('unique_locks', 'held')}"
            f" WHERE held.key IN ({_marks(keys)}) ORDER BY held.key {how}",
            list(keys),
        )

    def _unlock(
        self,
        keys: Collection[str],
        ids: Collection[UUID],
        *,
        where: str = f"AND {OF_NO_PERIOD.format(LOCKS)}",
    ) -> None:
        # Both lists at once: a job has one key, so nobody else's lock is in both.
        marks, given = self._in(ids)
        self._execute(
            f"DELETE {self._from_locks()} WHERE {LOCKS}.key IN ({_marks(keys)})"
            f" AND {LOCKS}.job_id IN ({marks}) {where}",
            [*keys, *given],
        )

    def _lock_row(self, lock: NewLock) -> Sequence[Any]:
        return lock.key, self.to_id(lock.job_id), self.to_time(lock.expires_at)

    def _changed(self, sql: str, parameters: Sequence[Any]) -> int:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return int(cursor.rowcount)

    # ── Dialects ───────────────────────────────────────────────────────────────

    @property
    def _quoted_key(self) -> str:
        return self.connection.ops.quote_name("key")  # a word of MySQL's own

    def _unless_locked(self) -> str:
        """Ends an INSERT of locks that leaves those alone that are there."""
        return "ON CONFLICT DO NOTHING"

    def _from_locks(self) -> str:
        return f"FROM {LOCKS}"

    def _as_committed(self) -> str:
        """Makes a read see what others have committed, at any level of isolation."""
        return ""


def is_end(outcome: Outcome) -> bool:
    """Has the job come to its end, or will it be tried again?"""
    match outcome:
        case Finished() | Failed(retry_at=None):
            return True
    return False


def _portions(keys: Collection[str]) -> Iterator[Sequence[str]]:
    """Keys in their order, as many at a time as any database takes."""
    ordered = sorted(keys)
    for i in range(0, len(ordered), AT_ONCE):
        yield ordered[i : i + AT_ONCE]


def _marks(values: Collection[Any]) -> str:
    return ", ".join(["%s"] * len(values))


# The conditions for which MySQL is told the index.
EXPIRED = "held.expires_at <= %s"
OF_JOBS = "locks of jobs"
