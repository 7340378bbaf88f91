"""What workers outside send, and what they are told."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, JsonValue

from .job_schemas import Standing
from .wire import Moment, Request, Seconds, Stamp, Truth, Whole

# What is sent together is written together.
MOST_AT_ONCE = 100
LONGEST_TEXT = 65_536

Name = Annotated[str, Field(max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")]
QueueName = Annotated[
    str, Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")
]
ClaimToken = Annotated[str, Field(pattern=r"^[0-9a-f]{32}\.[0-9]{1,5}\.[0-9]{1,17}$")]


class Registration(Request):
    """What a new worker tells of itself. All of it may be left out."""

    name: Name = Field(
        default="", description="Shown to operators; need not be unique."
    )
    queues: list[QueueName] = Field(
        default=[],
        max_length=MOST_AT_ONCE,
        description="Names, or beginnings of names with `*`, in the order in which "
        "they are served. None: the queues of external tasks that the token allows.",
    )
    version: Name = Field(default="", description="Of the worker, shown to operators.")
    hostname: Name = Field(default="", description="Where it runs, shown to operators.")
    pid: Whole = Field(default=0, ge=0, le=2**31 - 1)


class Registered(BaseModel):
    """By what the worker is known from now on."""

    id: UUID
    secret: str = Field(description="The bearer token of all its other requests.")
    name: str
    queues: list[str]
    ping_every: float = Field(description="Seconds, recommended.")
    valid_for: float = Field(
        description="Seconds of silence after which the worker is taken for dead."
    )


class Ping(Request):
    """That a worker lives, and what it holds if it likes to tell."""

    jobs: list[UUID] | None = Field(
        default=None,
        max_length=10_000,
        description="All jobs that it holds. What it does not name, and was given to "
        "it more than a minute ago, goes back: the answer got lost.",
    )
    as_of: Moment | None = Field(
        default=None,
        description="The `now` of the latest answer that it had heard when it put "
        "`jobs` together. A ping that was long on its way then takes back nothing that "
        "was given out meanwhile.",
    )


class Pulse(BaseModel):
    """What a worker hears when it calls."""

    alive: bool = Field(
        description="`false`: it was taken for dead. It drops all work, and registers "
        "anew."
    )
    cancelled: list[UUID] = Field(description="Jobs of its own that are to end.")
    quiet: bool = Field(description="It gets nothing new for now.")
    stop: bool = Field(description="An operator has asked it to finish and to leave.")
    now: Stamp = Field(description="What the clock of the queue shows: see `as_of`.")


class Dequeue(Request):
    """How many jobs a worker has room for. All of it may be left out."""

    queues: list[QueueName] = Field(
        default=[],
        max_length=MOST_AT_ONCE,
        description="None: those that it has registered for.",
    )
    limit: Whole = Field(default=1, ge=1, le=MOST_AT_ONCE)
    wait: Seconds = Field(
        default=0,
        description="Seconds to wait if there is no job; cut to `api_longest_wait`.",
        le=3600,
    )
    request_id: UUID | None = Field(
        default=None,
        description="Made by the worker. Who sends the same one again, because no "
        "answer came, is told of the same jobs again.",
    )


class Work(BaseModel):
    """A job to be done now."""

    id: UUID
    token: str = Field(description="Of this claim; every report names it.")
    task: str
    queue: str
    args: list[Any]
    kwargs: dict[str, Any]
    attempt: int = Field(description="Counted from one.")
    enqueued_at: Stamp
    deadline: Stamp | None = Field(
        description="From then on it counts as timed out, with a little grace."
    )
    seconds_left: float | None = Field(
        description="Until the deadline, as this is told. Whoever goes by it compares "
        "no clocks."
    )


class Dequeued(Pulse):
    """The jobs that a worker is to begin at once, the first first."""

    jobs: list[Work]


class Held(Request):
    """A claim that a worker has."""

    token: ClaimToken


class Heartbeat(BaseModel):
    """How a job stands that a worker has."""

    alive: bool = Field(description="Is the worker? See the ping.")
    held: bool = Field(description="`false`: the job is not this worker's any more.")
    cancelled: bool = Field(description="Somebody wants it to end.")
    deadline: Stamp | None
    seconds_left: float | None = Field(description="Until then, as this is told.")


class Failure(Request):
    """What went wrong."""

    type: Annotated[str, Field(max_length=255)] = "Error"
    message: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""
    traceback: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""


class Outcome(Request):
    """How one attempt has ended."""

    job: UUID
    token: ClaimToken
    outcome: Literal["succeeded", "failed", "timed_out", "cancelled", "released"]
    result: JsonValue = Field(default=None, description="Of one that has succeeded.")
    error: Failure | None = Field(default=None, description="Of one that has failed.")
    retry_after: Seconds | None = Field(
        default=None,
        le=31_536_000,
        description="Seconds after which a failed one is to be tried again, within its "
        "attempts.",
    )
    final: Truth = Field(default=False, description="It is of no use to try again.")


class Outcomes(Request):
    """How attempts have ended, some at a time."""

    outcomes: list[Outcome] = Field(
        min_length=1,
        max_length=MOST_AT_ONCE,
        description="Of several of the same attempt the first counts.",
    )


class OutcomeAnswer(BaseModel):
    """What has become of a report."""

    job: UUID
    recorded: bool = Field(
        description="Now, or when it was sent before, as far as that can be told of a "
        "job that is gone. `false`: the claim was lost, and nothing has changed."
    )
    state: Literal[Standing, "gone", "unknown"] = Field(
        description="Where the job stands; `gone` if it is not there, `unknown` to a "
        "worker that is not alive."
    )


class Reported(BaseModel):
    """What has become of reports, in their order."""

    alive: bool
    outcomes: list[OutcomeAnswer]


class Dismissed(BaseModel):
    """A worker that has signed off."""

    released: int = Field(description="Jobs that it had and that went back.")
