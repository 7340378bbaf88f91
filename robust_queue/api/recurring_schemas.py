"""Recurring tasks as the API tells of them, and how they are made."""

from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Schema
from pydantic import Field

from robust_queue.models.recurring import OnMissed, Outcome, Overlap
from robust_queue.recurrence import MISSED_LIMIT
from robust_queue.recurrence.refusals import LONGEST_JITTER, MOST_MISSED

from .job_schemas import Contents, QueueText, TaskPriority, TaskText
from .wire import Request, Stamp, Truth, Whole, among

Key = Annotated[
    str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")
]

_LONGEST_JITTER = int(LONGEST_JITTER.total_seconds())


class Timetable(Request):
    """A task and when it is to run, as `schedule_recurring()` has it."""

    task: TaskText
    schedule: Annotated[str, Field(max_length=255)] = Field(
        description="A crontab, or an interval such as `every 90 seconds`."
    )
    args: list[Any] = Field(default=[])
    kwargs: dict[str, Any] = Field(default={})
    queue: QueueText | None = None
    priority: TaskPriority | None = None
    timezone: Annotated[str, Field(max_length=64)] | None = None
    description: Annotated[str, Field(max_length=10_000)] = ""
    enabled: Truth = True
    on_missed: Literal["skip", "run_once", "run_all"] = "run_once"
    missed_limit: Annotated[Whole, Field(ge=1, le=MOST_MISSED)] = MISSED_LIMIT
    overlap: Literal["allow", "skip", "queue"] = "allow"
    jitter: Annotated[Whole, Field(ge=0, le=_LONGEST_JITTER)] = Field(
        default=0, description="Seconds by which a run may be late, by chance."
    )


class NewTimetable(Timetable):
    """Likewise, under a key that nobody has."""

    key: Key


class RecurringFacts(Schema):
    """A recurring task."""

    key: str
    task: str
    schedule: str
    timezone: str
    queue: str
    priority: int | None
    description: str
    state: Literal["active", "paused", "orphaned", "retired"]
    enabled: bool
    is_declared: bool = Field(description="In code or settings: changed there only.")
    on_missed: Annotated[str, among(*OnMissed.values)]
    missed_limit: int
    overlap: Annotated[str, among(*Overlap.values)]
    jitter: int
    next_run_at: Stamp | None
    contents: Contents
    args: list[Any] | None
    kwargs: dict[str, Any] | None


class InstantFacts(Schema):
    """An instant of a schedule, and what has become of it."""

    run_at: Stamp
    by_hand: bool
    outcome: Annotated[str, among(*Outcome.values)]
    reason: str = Field(description="Of an error only its class, to who sees no more.")
    job: UUID | None


class Toggled(Schema):
    """Whether anything is different now."""

    changed: bool = Field(description="`false`: it was so already.")
