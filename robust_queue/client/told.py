"""What the queue tells, as it arrives."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Read from JSON. What a newer queue tells beside it is left out."""

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """From the object that was sent."""
        known = {each.name for each in fields(cls)}
        return cls(**{name: facts[name] for name in facts if name in known})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse(Told):
    """What a worker hears when it calls."""

    # False: it was taken for dead, and all its work is somebody else's.
    alive: bool
    # Ids of jobs of its own that somebody wants to end.
    cancelled: list[str]
    # It gets nothing new for now.
    quiet: bool
    # It is to finish and to leave.
    stop: bool
    # What the clock of the queue shows: only the queue makes anything of it.
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Told):
    """A job that is claimed, and is to be begun at once."""

    id: str
    # Of this claim: every report names it.
    token: str
    task: str
    queue: str
    args: list[Any]
    kwargs: dict[str, Any]
    attempt: int
    enqueued_at: str
    deadline: str | None
    # Until the deadline, from the moment at which the answer arrived.
    seconds_left: float | None
    # That moment, by the clock that nobody sets.
    heard_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing(Told):
    """How a job stands that a worker has."""

    alive: bool
    # False: it is not this worker's any more.
    held: bool
    cancelled: bool
    deadline: str | None
    seconds_left: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Told):
    """What has become of a report."""

    job: str
    # Now, or when it was sent before. False: the claim was lost, nothing has changed.
    recorded: bool
    state: str
