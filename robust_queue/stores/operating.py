"""What operators ask for: rarely, in short transactions, the same on every database."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from .conflicts import retried
from .records import FAILED_COLUMNS
from .rows import DISCARDABLE
from .settling import Rank, Settling

# In the direction of the arrows: a job that moves on is met again at the next table.
WAITING = ("scheduled", "blocked", "ready")


class Operating(Settling):
    """Discards, retries and cancels jobs by their identifiers."""

    def discard(self, ids: Sequence[UUID], states: Sequence[str] = DISCARDABLE) -> int:
        """Delete those of the jobs that are in one of these states; return how many.

        In the direction of the arrows: a job that moves on meanwhile is met again at
        the next table. Whoever claims it first has it.
        """

        def change() -> int:
            with transaction.atomic(using=self.alias):
                gone = [job_id for state in states for job_id in self._take(state, ids)]
                self._drop(gone)
                return len(gone)

        return retried(self.alias, change) if ids else 0

    def retry(self, ids: Sequence[UUID], *, rank: Rank, now: datetime) -> int:
        """Make those of the jobs that have failed ready again; return how many.

        The failure becomes an earlier attempt, and attempts are counted on. Of several
        who retry a job at the same time, one does.
        """

        def change() -> int:
            with transaction.atomic(using=self.alias):
                failed = self._lock_failed(ids)
                if not failed:
                    return 0
                again = self._ready_again(failed, rank, now)
                self._keep_failures(again)
                # Somebody may have wanted its end while it ran. Not any more.
                self._delete("cancellations", "job_id", again)
                return len(again)

        return retried(self.alias, change) if ids else 0

    def cancel_waiting(
        self, ids: Sequence[UUID], *, words: Sequence[str], now: datetime
    ) -> list[UUID]:
        """Make those of the jobs that wait failed; return which.

        ``words`` are the kind, the class, the message and the traceback to record. Of
        those who cancel a job and who claim it at the same time, one has it.
        """

        def change() -> list[UUID]:
            with transaction.atomic(using=self.alias):
                taken = dict[UUID, int]()
                for state in WAITING:
                    taken |= self._take(state, ids)
                self._insert(
                    "failed_executions",
                    FAILED_COLUMNS,
                    (
                        (self.to_id(job_id), attempts, "", moment, moment, *words)
                        for job_id, attempts in taken.items()
                    ),
                )
                return list(taken)

        moment = self.to_time(now)
        return retried(self.alias, change) if ids else []

    def _take(self, state: str, ids: Sequence[UUID]) -> dict[UUID, int]:
        """Lock and delete the rows of these jobs; return how often each was tried."""
        table = f"{state}_executions"
        marks, keys = self._in(ids)
        rows = self._fetch(
            f"SELECT job_id, attempts FROM {self._by_key(table)}"
            f" WHERE job_id IN ({marks}) ORDER BY job_id {self._for_update()}",
            keys,
        )
        found = {self.from_id(job_id): attempts for job_id, attempts in rows}
        self._delete(table, "job_id", list(found))
        return found
