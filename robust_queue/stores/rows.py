"""What goes into a store and what comes out of it: plain values, no models.

Nobody changes them. Those of which one is made for every job are not frozen all the
same: that would take three times as long.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from django.utils import timezone

from robust_queue.policies import Kind

# In the direction of the arrows: who moves on meanwhile is met again further on.
DISCARDABLE = ("scheduled", "blocked", "failed", "ready")


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
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
    unique_key: str = ""
    partition_key: str = ""
    # It takes the place of another one, whose slots it goes on with.
    has_slots: bool = False

    @property
    def is_due(self) -> bool:
        return self.run_after is None or self.run_after <= self.enqueued_at

    @property
    def is_plain(self) -> bool:
        """Does it need nothing that only some jobs have?"""
        return not (self.concurrency_key or self.unique_key or self.partition_key)

    @property
    def is_limited(self) -> bool:
        """Does it need slots, now?"""
        return bool(self.concurrency_key) and self.is_due and not self.has_slots


class NewLock(NamedTuple):
    """A unique key that a job asks for."""

    key: str
    job_id: UUID
    # None: until somebody lets go of it.
    expires_at: datetime | None = None


class Holder(NamedTuple):
    """Who holds a unique key."""

    job_id: UUID
    expires_at: datetime | None
    # Where its job stands; empty if it has ended, or is gone.
    state: str

    @property
    def is_of_a_period(self) -> bool:
        """Is the key held for its time, whatever becomes of the job?"""
        return self.expires_at is not None

    def is_stale(self, now: datetime) -> bool:
        """Is the lock left over? Then whoever wants the key may have it."""
        return not self.state if self.expires_at is None else self.expires_at <= now


class Holding(Protocol):
    """Whatever names a claim: its job, and the token that only its holder knows."""

    @property
    def job_id(self) -> UUID: ...
    @property
    def token(self) -> UUID: ...
    @property
    def concurrency_key(self) -> str: ...


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
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
    metadata: str = ""
    rank: int = 0
    concurrency_key: str = ""
    unique_key: str = ""
    partition_key: str = ""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Outcome:
    """How the attempt of a claim ended; acts only if the token still matches."""

    job_id: UUID
    token: UUID
    attempts: int
    worker_id: str
    started_at: datetime
    finished_at: datetime
    # What the claim has of these: its slots and its lock go with it.
    concurrency_key: str = ""
    unique_key: str = ""

    @property
    def size(self) -> int:
        """How much text there is to be stored, in characters."""
        return 0


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Finished(Outcome):
    """The task returned."""

    result: str
    # False: the job leaves no trace, as preserve_finished_jobs=False asks.
    keep: bool = True

    @property
    def size(self) -> int:
        return len(self.result)


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Failed(Outcome):
    """The task raised, or could not be started."""

    exception_class: str
    message: str
    traceback: str
    # None: failed for good. Else the attempt is kept and the job waits for this moment.
    retry_at: datetime | None = None
    kind: str = Kind.ERROR

    @property
    def size(self) -> int:
        return len(self.message) + len(self.traceback)


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Snoozed(Outcome):
    """The task has asked for a later moment. The attempt does not count."""

    until: datetime


@dataclass(slots=True)
class ByKind:
    """Outcomes, sorted by what becomes of their jobs."""

    kept: list[Finished] = field(default_factory=list)
    dropped: list[Finished] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    retried: list[Failed] = field(default_factory=list)
    snoozed: list[Snoozed] = field(default_factory=list)
    # Whatever became of them: those whose slots are free now.
    limited: list[Outcome] = field(default_factory=list)


def by_kind(outcomes: Iterable[Outcome]) -> ByKind:
    """Sort outcomes out, for the statements that record each kind."""
    found = ByKind()
    for outcome in outcomes:
        if outcome.concurrency_key:
            found.limited.append(outcome)
        match outcome:
            case Finished(keep=keep):
                (found.kept if keep else found.dropped).append(outcome)
            case Failed(retry_at=None):
                found.failed.append(outcome)
            case Failed():
                found.retried.append(outcome)
            case Snoozed():
                found.snoozed.append(outcome)
    return found


class Limit(NamedTuple):
    """How many jobs with a key may run at a time."""

    key: str
    # None: as many as before, or one if nobody has ever said.
    slots: int | None
    # From then on its count is looked through.
    expires_at: datetime


class LimitedJob(NamedTuple):
    """A job that needs a slot of each of its keys to become ready."""

    job_id: UUID
    task_path: str
    backend: str
    queue_name: str
    concurrency_key: str


class Dispatched(NamedTuple):
    """What was due: how many jobs, and those of them that need slots."""

    moved: int
    limited: Sequence[LimitedJob] = ()


class Milestone(NamedTuple):
    """How far a walk along the jobs that have ended has come, from the oldest on."""

    finished_at: datetime
    job_id: UUID = UUID(int=0)


class EndedJob(NamedTuple):
    """A job that has finished or failed, as far as it matters how long it is kept.

    What its job's row would tell is empty if there is none.
    """

    finished_at: datetime
    job_id: UUID
    kind: str
    task_path: str
    backend: str
    queue_name: str

    @property
    def milestone(self) -> Milestone:
        return Milestone(self.finished_at, self.job_id)


class Place(NamedTuple):
    """Where a job stands in the order of its queue, or of all queues."""

    rank: int
    job_id: UUID


@dataclass(frozen=True, slots=True)
class Selection:
    """Which queues to take from, in order: names, ``prefix*`` and ``*``.

    With a place to begin at, jobs before it may be passed over by databases for which
    that is cheaper: those that were taken leave something behind for a while. Likewise
    nothing at all may be found where some queue is paused, if none is expected to be.
    A pause that has come to its end by ``now`` is none.

    The partitions of some queues take turns: these are told with the partition that was
    served last. Which of the queues of a pattern goes first depends on the turn.

    Queues that are left out are never looked at, whatever the patterns say.
    """

    patterns: Sequence[str] = ("*",)
    start: Place | None = None
    expects_no_pause: bool = False
    now: datetime = field(default_factory=timezone.now)
    partitioned: Mapping[str, str] = field(default_factory=dict)
    turn: int = 0
    left_out: Sequence[str] = ()

    @property
    def is_plain(self) -> bool:
        """Is every queue of a pattern looked at together with the others?"""
        return not (self.partitioned or self.left_out)
