"""Values of the lifecycle as rows of the tables, and back."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from .dialect import Dialect
from .rows import Claim, Failed, Finished, NewJob, Outcome

# Counted up, but not beyond what the column holds: a row that cannot be counted on
# would fail every claim that meets it.
ONE_MORE_ATTEMPT = "CASE WHEN attempts < 32767 THEN attempts + 1 ELSE attempts END"

JOB_COLUMNS = (
    "id",
    "task_path",
    "backend",
    "queue_name",
    "priority",
    "arguments",
    "metadata",
    "concurrency_key",
    "run_after",
    "enqueued_at",
)
READY_COLUMNS = ("job_id", "queue_name", "priority", "attempts", "created_at")
SCHEDULED_COLUMNS = (*READY_COLUMNS, "scheduled_at")
ENDED_COLUMNS = ("job_id", "attempts", "worker_id", "started_at", "finished_at")
FINISHED_COLUMNS = (*ENDED_COLUMNS, "result")
FAILED_COLUMNS = (*ENDED_COLUMNS, "kind", "exception_class", "message", "traceback")
RETRIED_COLUMNS = (*FAILED_COLUMNS, "retry_at")
SNOOZED_COLUMNS = ("job_id", "finished_at", "until")


class Records(Dialect):
    """What is written into which column."""

    def _job_row(self, job: NewJob) -> Sequence[Any]:
        return (
            self.to_id(job.id),
            job.task_path,
            job.backend,
            job.queue_name,
            job.priority,
            job.arguments,
            job.metadata,
            job.concurrency_key,
            self.to_time(job.run_after),
            self.to_time(job.enqueued_at),
        )

    def _ready_row(self, job: NewJob) -> Sequence[Any]:
        since = self.to_time(job.enqueued_at)
        return (self.to_id(job.id), job.queue_name, job.rank, 0, since)

    def _scheduled_row(self, job: NewJob) -> Sequence[Any]:
        return (*self._ready_row(job), self.to_time(job.run_after))

    def _ended_row(self, outcome: Outcome) -> Sequence[Any]:
        return (
            self.to_id(outcome.job_id),
            outcome.attempts,
            outcome.worker_id,
            self.to_time(outcome.started_at),
            self.to_time(outcome.finished_at),
        )

    def _finished_row(self, outcome: Finished) -> Sequence[Any]:
        return (*self._ended_row(outcome), outcome.result)

    def _failed_row(self, outcome: Failed) -> Sequence[Any]:
        return (
            *self._ended_row(outcome),
            outcome.kind,
            outcome.exception_class,
            outcome.message,
            outcome.traceback,
        )

    def _retried_row(self, outcome: Failed) -> Sequence[Any]:
        return (*self._failed_row(outcome), self.to_time(outcome.retry_at))

    def _claim(self, row: Sequence[Any], process_id: UUID, token: UUID) -> Claim:
        return Claim(
            job_id=self.from_id(row[0]),
            token=token,
            process_id=process_id,
            attempts=row[1],
            task_path=row[2],
            backend=row[3],
            queue_name=row[4],
            priority=row[5],
            arguments=row[6],
            enqueued_at=self.from_time(row[7]),
            run_after=self.from_time(row[8]),
            metadata=row[9],
            rank=row[10],
        )
