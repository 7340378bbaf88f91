"""What operators ask for: rarely, in short transactions, the same on every database."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from robust_queue.flow.keys import split

from .conflicts import retried
from .records import FAILED_COLUMNS, JOB_COLUMNS
from .rows import DISCARDABLE, NewJob
from .settling import Rank, Settling

# In the direction of the arrows: a job that moves on is met again at the next table.
WAITING = ("scheduled", "blocked", "ready")


class Operating(Settling):
    """Discards, retries and cancels jobs by their identifiers."""

    def discard(
        self,
        ids: Sequence[UUID],
        states: Sequence[str] = DISCARDABLE,
    ) -> int:
        """Delete those of the jobs that are in one of these states; return how many.

        In the direction of the arrows: a job that moves on meanwhile is met again at
        the next table. Whoever claims it first has it. Slots and unique keys are free
        from then on.
        """

        def change() -> int:
            with transaction.atomic(using=self.alias):
                taken = {state: self._take(state, ids) for state in states}
                gone = [job_id for each in taken.values() for job_id in each]
                slots = self._slots_of(taken.get("ready", ()))
                self._drop(gone)
                self._unlock_jobs(gone)
                self._free(slots)
                return len(gone)

        return retried(self.alias, change) if ids else 0

    def make_way(self, job_id: UUID, *, keeps_slots: bool) -> str:
        """Delete a job that waits, for another one; return where it was, if it did.

        Its unique key is kept for the other one. So are its slots, if it had any and
        that is asked for. Part of a transaction.
        """
        for state in WAITING:
            if self._take(state, [job_id]):
                frees = state == "ready" and not keeps_slots
                slots = self._slots_of([job_id] if frees else [])
                self._drop([job_id])
                self._free(slots)
                return state
        return ""

    def retry(self, ids: Sequence[UUID], *, rank: Rank, now: datetime) -> int:
        """Make those of the jobs that have failed ready again; return how many.

        The failure becomes an earlier attempt, and attempts are counted on. Of several
        who retry a job at the same time, one does. A unique one takes its key again, or
        stays failed while another one of it waits or runs.
        """

        def change() -> int:
            with transaction.atomic(using=self.alias):
                failed = self._lock_failed(ids)
                if not failed:
                    return 0
                again = self._wait_again(failed, rank, now)
                self._keep_failures(again)
                # Somebody may have wanted its end while it ran. Not any more.
                self._delete("cancellations", "job_id", again)
                return len(again)

        return retried(self.alias, change) if ids else 0

    def insert_failed(
        self, jobs: Sequence[tuple[NewJob, Sequence[str]]], *, now: datetime
    ) -> None:
        """Insert jobs that will never run, each with the words to record of it.

        As ``fail_waiting`` has them. Part of a transaction.
        """
        moment = self.to_time(now)
        self._insert("jobs", JOB_COLUMNS, (self._job_row(job) for job, _ in jobs))
        self._insert(
            "failed_executions",
            FAILED_COLUMNS,
            (
                (self.to_id(job.id), 0, "", moment, moment, *words)
                for job, words in jobs
            ),
        )

    def fail_waiting(
        self,
        words: Mapping[UUID, Sequence[str]],
        *,
        states: Sequence[str] = WAITING,
        now: datetime,
    ) -> list[UUID]:
        """Make those of the jobs that wait failed; return which.

        ``words`` are the kind, the class, the message and the traceback to record of
        each. Of those who end a job and who claim it at the same time, one has it.
        """

        def change() -> list[UUID]:
            with transaction.atomic(using=self.alias):
                by_state = {each: self._take(each, list(words)) for each in states}
                taken = {k: v for each in by_state.values() for k, v in each.items()}
                self._insert(
                    "failed_executions",
                    FAILED_COLUMNS,
                    (
                        (self.to_id(each), attempts, "", moment, moment, *words[each])
                        for each, attempts in taken.items()
                    ),
                )
                self._unlock_jobs(list(taken))
                self._free(self._slots_of(by_state.get("ready", ())))
                return list(taken)

        moment = self.to_time(now)
        return retried(self.alias, change) if words else []

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

    def _slots_of(self, ready: Collection[UUID]) -> Counter[str]:
        """The slots that these jobs have, which were ready."""
        jobs = self._jobs_to_wait(ready) if ready else ()
        return Counter(key for job in jobs for key in split(job.concurrency_key))

    def _free(self, slots: Counter[str]) -> None:
        """Give slots back. Last of all: who waits for something holds no key."""
        if slots:
            self._lock_semaphores(slots)
            self._give_back_slots(slots)
