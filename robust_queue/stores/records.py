"""Values of the lifecycle as rows of the tables, and back."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from robust_queue.flow.keys import SEPARATOR

from .dialect import Dialect
from .rows import Claim, Failed, Finished, NewJob, Outcome

# Counted up, but not beyond what the column holds: a row that cannot be counted on
# would fail every claim that meets it.
ONE_MORE_ATTEMPT = "CASE WHEN attempts < 32767 THEN attempts + 1 ELSE attempts END"

# Who has given way stands behind everybody else in the line of its key, as if it had a
# rank that nobody has. When it leaves the line it is that of its job again.
BEHIND = 1000


def rank(column: str) -> str:
    """The rank of a job, whatever its place in a line."""
    return (
        f"CASE WHEN {column} > {BEHIND // 2} THEN {column} - {BEHIND} ELSE {column} END"
    )


# Of a job of which nothing is unique, and which is shared out with nobody.
PLAIN_JOB_COLUMNS = (
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
JOB_COLUMNS = (*PLAIN_JOB_COLUMNS, "unique_key", "partition_key")
WAITING_COLUMNS = ("job_id", "queue_name", "priority", "attempts", "created_at")
READY_COLUMNS = (*WAITING_COLUMNS, "partition_key")
SCHEDULED_COLUMNS = (*WAITING_COLUMNS, "scheduled_at")
BLOCKED_COLUMNS = (*WAITING_COLUMNS, "concurrency_key", "other_keys")
ENDED_COLUMNS = ("job_id", "attempts", "worker_id", "started_at", "finished_at")
FINISHED_COLUMNS = (*ENDED_COLUMNS, "result")
FAILED_COLUMNS = (*ENDED_COLUMNS, "kind", "exception_class", "message", "traceback")
RETRIED_COLUMNS = (*FAILED_COLUMNS, "retry_at")
SNOOZED_COLUMNS = ("job_id", "finished_at", "until")


class Records(Dialect):
    """What is written into which column."""

    def _job_row(self, job: NewJob) -> Sequence[Any]:
        return (*self._plain_job_row(job), job.unique_key, job.partition_key)

    def _plain_job_row(self, job: NewJob) -> Sequence[Any]:
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

    def _waiting_row(self, job: NewJob) -> Sequence[Any]:
        since = self.to_time(job.enqueued_at)
        return (self.to_id(job.id), job.queue_name, job.rank, 0, since)

    def _ready_row(self, job: NewJob) -> Sequence[Any]:
        return (*self._waiting_row(job), job.partition_key)

    def _blocked_row(self, job: NewJob) -> Sequence[Any]:
        first, _, others = job.concurrency_key.partition(SEPARATOR)
        return (*self._waiting_row(job), first, others)

    def _scheduled_row(self, job: NewJob) -> Sequence[Any]:
        return (*self._waiting_row(job), self.to_time(job.run_after))

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
            concurrency_key=row[11],
            unique_key=row[12],
            partition_key=row[13],
        )
