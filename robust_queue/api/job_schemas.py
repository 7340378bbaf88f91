"""Jobs as the API tells of them, and what they are looked for by."""

from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from ninja import Schema
from pydantic import Field

from robust_queue.lifecycle.search_words import LARGEST, LENGTHS, SMALLEST

from .wire import Moment, Request, Stamp, Whole, among

MOST_AT_ONCE = 500
LONGEST_TEXT = 1_000

State = Literal[
    "scheduled", "ready", "blocked", "claimed", "failed", "finished", "pending"
]
# Where a job may stand. One is lost whose row of any state is missing.
Standing = Literal[
    "scheduled", "ready", "blocked", "claimed", "failed", "finished", "lost"
]
Kind = Literal["error", "timed_out", "crashed", "cancelled", "discarded", "expired"]
Order = Literal["newest", "oldest"]
Contents = Literal["shown", "redacted", "hidden"]
Priority = Annotated[int, Field(ge=SMALLEST, le=LARGEST)]


# What no name has, and what not every database can be asked for.
_NO_NUL = r"^[^\x00]*$"
# As tasks may have it; jobs may have been written under another rule.
TaskPriority = Annotated[Whole, Field(ge=-100, le=100)]
QueueText = Annotated[str, Field(max_length=LENGTHS["queue"], pattern=_NO_NUL)]
TaskText = Annotated[str, Field(max_length=LENGTHS["task"], pattern=_NO_NUL)]
Words = Annotated[str, Field(max_length=LONGEST_TEXT, pattern=_NO_NUL)]


class JobFilter(Request):
    """What jobs are to have in common. What is not said does not matter."""

    state: State | None = Field(
        default=None,
        description="`pending` is short for all that is not over: scheduled, ready, "
        "blocked and claimed.",
    )
    queue: QueueText | None = None
    task: TaskText | None = Field(default=None, description="The whole path.")
    priority: Priority | None = None
    error: TaskText | None = Field(
        default=None, description="The whole path of an exception; failed jobs only."
    )
    kind: Kind | None = Field(default=None, description="Of failed jobs only.")
    worker: QueueText | None = Field(
        default=None, description="The name of one, or the id of one that is alive."
    )
    recurring: TaskText | None = Field(
        default=None, description="The key of a recurring task."
    )
    key: TaskText | None = Field(default=None, description="A concurrency key.")
    enqueued_from: Moment | None = None
    enqueued_until: Moment | None = Field(default=None, description="Before it.")
    finished_from: Moment | None = None
    finished_until: Moment | None = Field(default=None, description="Before it.")
    text: Words | None = Field(
        default=None,
        description="An id, the whole path of a task, or a text in arguments for those "
        "who may see all of them.",
    )


class BodyFilter(JobFilter):
    """Likewise in JSON, where numbers are numbers."""

    priority: Annotated[Whole, Field(ge=SMALLEST, le=LARGEST)] | None = None


class Failing(Schema):
    """How an attempt has failed."""

    type: str = Field(description="The path of an exception.")
    kind: Annotated[str, among(*get_args(Kind))]
    message: str | None = Field(
        default=None, description="`null` for those who may not see it, and in lists."
    )
    traceback: str | None = None


class JobStanding(Schema):
    """Where a job stands: all that is told to those who may not look at jobs."""

    id: UUID
    state: Literal[Standing, "gone"] = Field(description="`gone` if it is not there.")


class Job(Schema):
    """A job, and where it stands."""

    id: UUID
    task: str
    queue: str
    priority: int
    state: Literal[Standing, "gone"] = Field(
        description="In the answer to a change also `gone`: the job no longer exists."
    )
    attempts: int = Field(description="How many have begun.")
    enqueued_at: Stamp
    since: Stamp = Field(description="When it came to stand where it stands.")
    due_at: Stamp | None = Field(description="Of a scheduled one.")
    started_at: Stamp | None = Field(description="The latest attempt.")
    finished_at: Stamp | None
    worker: str | None = Field(
        description="The id of the process that has it, or the name of the one that "
        "had it last."
    )
    concurrency_keys: list[str]
    error: Failing | None
    contents: Contents = Field(
        description="Whether arguments and what else it is about are told to whoever "
        "asks, where they are asked for."
    )
    args: list[Any] | None = Field(
        default=None, description="`null` if they were not asked for, or are hidden."
    )
    kwargs: dict[str, Any] | None = None


class Attempt(Schema):
    """An attempt that is over."""

    number: int = Field(description="Counted from one.")
    worker: str
    started_at: Stamp
    finished_at: Stamp
    error: Failing | None


class Step(Schema):
    """Something that has become of a job."""

    what: str = Field(description="Such as `enqueued`, `started`, `failed`.")
    at: Stamp


class JobInFull(Job):
    """All there is to tell of a job."""

    backend: str
    run_after: Stamp | None
    result: Any = None
    attempts_made: list[Attempt] = Field(description="The latest hundred.")
    history: list[Step]
    reasons: list[str] = Field(description="Why it is not running, in words.")


JobAsSeen = JobInFull | JobStanding


class JobPage(Schema):
    """Some jobs, and the way to the next ones."""

    jobs: list[Job]
    next: UUID | None = Field(
        description="The `behind` of the next page; `null` if this is the last. A page "
        "may be empty and not be the last: what no index finds is looked for in steps."
    )


class Count(Schema):
    """How many jobs match."""

    count: int
    is_complete: bool = Field(
        description="`false`: the time was up. Ask again `behind` what `next` says, "
        "and add the numbers."
    )
    next: str | None


class GroupCount(Schema):
    """How many jobs of a group match."""

    name: str
    count: int


class Counts(Schema):
    """How many jobs match, in groups, the largest first."""

    groups: list[GroupCount]
    is_complete: bool
    next: str | None
