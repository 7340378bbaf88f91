"""How jobs that have ended are found by their age, and deleted, in portable SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from django.db import transaction

from .conflicts import retried
from .rows import EndedJob, Milestone
from .settling import Settling

State: TypeAlias = Literal["finished", "failed"]

# What is read of the rows of each state, in the order of the index on their time.
ENDED: dict[State, str] = {
    "finished": "finished_at, job_id, '' AS kind FROM robust_queue_finished_executions",
    "failed": "finished_at, job_id, kind FROM robust_queue_failed_executions",
}


class Clearing(Settling):
    """A walk along the jobs that have ended, from the oldest on, and what it deletes.

    To look and to delete are two steps: which of the jobs are to go is decided by what
    their tasks declare, and nothing is locked meanwhile.
    """

    def ended(
        self,
        state: State,
        *,
        before: datetime,
        after: Milestone | None = None,
        limit: int,
    ) -> list[EndedJob]:
        """The oldest jobs that ended before that moment, those behind a milestone.

        Only where to begin is asked of the index. Two bounds would look to a planner
        like a few rows, to be read at once and sorted.
        """
        where, parameters = self._behind(after)
        rows = self._fetch(
            f"WITH ended AS (SELECT * FROM (SELECT {ENDED[state]}"
            f" {self._hint(ENDED[state])} {where} ORDER BY finished_at, job_id"
            " LIMIT %s) oldest WHERE finished_at < %s)"
            " SELECT ended.finished_at, ended.job_id, ended.kind,"
            " job.task_path, job.backend, job.queue_name FROM ended"
            f" LEFT JOIN {self._jobs_that_ended()} ON job.id = ended.job_id"
            " ORDER BY ended.finished_at, ended.job_id",
            (*parameters, limit, self.to_time(before)),
        )
        return [self._ended_job(*row) for row in rows]

    def clear(
        self, state: State, ids: Sequence[UUID], *, before: datetime
    ) -> set[UUID]:
        """Delete those of the jobs that are still there as they were; return which.

        With their past. One that another transaction has locked is passed over: it is
        being cleared, discarded or retried. One that was retried, and has failed again
        since, is not as old as it was when it was looked at.
        """

        def change() -> set[UUID]:
            with transaction.atomic(using=self.alias):
                found = self._lock_ended(state, ids, before)
                self._delete(f"{state}_executions", "job_id", found)
                self._drop(found)
                return set(found)

        return retried(self.alias, change) if ids else set()

    def _behind(self, milestone: Milestone | None) -> tuple[str, list[Any]]:
        if milestone is None:
            return "", []
        moment = self.to_time(milestone.finished_at)
        # For databases to which a comparison of pairs does not tell where to begin.
        where = "WHERE finished_at >= %s AND (finished_at > %s OR job_id > %s)"
        return where, [moment, moment, self.to_id(milestone.job_id)]

    def _jobs_that_ended(self) -> str:
        return self._by_key("jobs", "job")

    def _ended_job(
        self, finished_at: Any, job_id: Any, kind: str, *of_job: str | None
    ) -> EndedJob:
        told = [text or "" for text in of_job]
        return EndedJob(self.from_time(finished_at), self.from_id(job_id), kind, *told)

    def _lock_ended(
        self, state: State, ids: Sequence[UUID], before: datetime
    ) -> list[UUID]:
        marks, keys = self._in(ids)
        rows = self._fetch(
            f"SELECT job_id FROM {self._by_key(state + '_executions')}"
            f" WHERE job_id IN ({marks}) AND finished_at < %s"
            f" ORDER BY job_id {self._skip_locked()}",
            (*keys, self.to_time(before)),
        )
        return [self.from_id(job_id) for (job_id,) in rows]
