"""What goes into a store and what comes out of it: plain values, no models."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to insert, with the execution row that tells where it starts."""

    id: UUID
    task_path: str
    backend: str
    queue_name: str
    priority: int
    rank: int
    arguments: str
    enqueued_at: datetime
    run_after: datetime | None = None
    metadata: str = ""
    concurrency_key: str = ""

    @property
    def is_due(self) -> bool:
        return self.run_after is None or self.run_after <= self.enqueued_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A job that belongs to one process until it is settled or released."""

    job_id: UUID
    token: UUID
    process_id: UUID
    attempts: int
    task_path: str
    backend: str
    queue_name: str
    priority: int
    arguments: str
    enqueued_at: datetime
    run_after: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the attempt of a claim ended; acts only if the token still matches."""

    job_id: UUID
    token: UUID
    attempts: int
    worker_id: str
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Outcome):
    """The task returned."""

    result: str
    # False: the job leaves no trace, as preserve_finished_jobs=False asks.
    keep: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Outcome):
    """The task raised, or could not be started."""

    exception_class: str
    message: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Which queues to take from, in order: names, ``prefix*`` and ``*``."""

    patterns: Sequence[str] = ("*",)
