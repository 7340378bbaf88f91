"""What becomes of a job whose attempt went wrong: policies, and pure decisions.

Nothing here knows the database, and ``now`` is handed in. What a task declares is read
from the task as the running code has it, so that a change of policy counts for jobs
that are already waiting.
"""

import logging
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NamedTuple, TypeAlias

from .backoffs import LONGEST_DELAY, Backoff, exponential
from .exceptions import Discard, Retry, TaskCancelled, TaskExpired, TaskTimeout

logger = logging.getLogger("robust_queue")

OnCrash: TypeAlias = Literal["fail", "retry"]
Isolation: TypeAlias = Literal["thread", "process"]
Errors: TypeAlias = tuple[type[BaseException], ...]

# Of a task that asks for another attempt, or may be run again after a crash, and does
# not say how often.
UNDECLARED_ATTEMPTS = CRASH_ATTEMPTS = 3

DEFAULT_BACKOFF = exponential()

_NOTHING = timedelta(0)


class Kind(StrEnum):
    """In which way a job has failed."""

    ERROR = ""
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"
    EXPIRED = "expired"

    @property
    def is_wanted(self) -> bool:
        """Has somebody meant it to end like that? Then nobody needs to look at it."""
        return self in (Kind.CANCELLED, Kind.DISCARDED, Kind.EXPIRED)


class Verdict(NamedTuple):
    """What an attempt that went wrong has come to."""

    kind: Kind
    # None: failed for good.
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What holds for the attempts of a job. None: nothing was said about it."""

    # None: one.
    max_attempts: int | None = None
    # None: exponential().
    backoff: Backoff | None = None
    # None: whatever is raised.
    retry_on: Errors | None = None
    # None: nothing.
    discard_on: Errors | None = None
    # From the start of an attempt, and from the enqueueing of the job. None: no end.
    timeout: timedelta | None = None
    deadline: timedelta | None = None
    # None: "retry" if more than one attempt was declared, else "fail".
    on_crash: OnCrash | None = None
    # None: as the worker is configured.
    isolation: Isolation | None = None
    # None: as clear_finished_jobs_after and clear_failed_jobs_after say.
    keep_result: timedelta | None = None
    keep_failure: timedelta | None = None

    @property
    def is_timed(self) -> bool:
        """Is there an end to the time of an attempt?"""
        return self.timeout is not None or self.deadline is not None


NAMES = tuple(each.name for each in fields(Policy))


def merged(*declared: object) -> Policy:
    """What the first of these says, else the second, and so on.

    Any object will do: a task of another backend has declared nothing.
    """
    said = {name: [getattr(each, name, None) for each in declared] for name in NAMES}
    return Policy(
        **{
            name: next((value for value in values if value is not None), None)
            for name, values in said.items()
        }
    )


# ── Decisions ──────────────────────────────────────────────────────────────────


def judge(
    policy: Any,
    error: BaseException,
    *,
    attempts: int,
    now: datetime,
    enqueued_at: datetime | None = None,
    who: str = "",
) -> Verdict:
    """What becomes of a job whose attempt has raised this.

    ``attempts`` counts those that were begun, this one included. A timeout is judged
    as a timeout: that it is an OSError as well does not make it a fault of the network.
    """
    kind = _kind_of(policy, error)
    if kind.is_wanted or not _is_to_be_retried(policy, error):
        return Verdict(kind)
    if attempts >= _attempts_granted(policy, error):
        return Verdict(kind)
    moment = _after_delay(policy, error, attempts, now, who)
    return Verdict(kind, None if _is_too_late(policy, moment, enqueued_at) else moment)


def judge_crash(
    policy: Any,
    error: BaseException,
    *,
    attempts: int,
    now: datetime,
    enqueued_at: datetime | None = None,
    who: str = "",
) -> Verdict:
    """Likewise of a job whose process has died."""
    moment = None
    if may_run_again(policy, attempts=attempts):
        moment = _after_backoff(policy, error, attempts, now, who)
    if _is_too_late(policy, moment, enqueued_at):
        moment = None
    return Verdict(Kind.CRASHED, moment)


def may_run_again(policy: Any, *, attempts: int) -> bool:
    """Would a crash of this attempt lead to another run, if its backoff agrees?"""
    declared = _max_attempts(policy)
    match getattr(policy, "on_crash", None):
        case "fail":
            return False
        case "retry":
            # Not for ever: it may be the task that kills its process.
            return attempts < (declared or CRASH_ATTEMPTS)
        case _:
            return attempts < (declared or 1)


def expires_at(policy: Any, enqueued_at: datetime) -> datetime | None:
    """From when on a job is not worth doing any more; None: it always is."""
    deadline: timedelta | None = getattr(policy, "deadline", None)
    return None if deadline is None else enqueued_at + deadline


def ends_at(policy: Policy, enqueued_at: datetime, *, now: datetime) -> datetime | None:
    """When the time of an attempt that begins now is up, in whichever way."""
    deadline = expires_at(policy, enqueued_at)
    if policy.timeout is None:
        return deadline
    ends = now + policy.timeout
    return ends if deadline is None else min(ends, deadline)


def _kind_of(policy: Any, error: BaseException) -> Kind:
    match error:
        case TaskCancelled():
            return Kind.CANCELLED
        case TaskExpired():
            return Kind.EXPIRED
        case Discard():
            return Kind.DISCARDED
        case TaskTimeout():
            is_dropped = TaskTimeout in (getattr(policy, "discard_on", None) or ())
            return Kind.DISCARDED if is_dropped else Kind.TIMED_OUT
        case Retry():
            return Kind.ERROR
    dropped = getattr(policy, "discard_on", None) or ()
    return Kind.DISCARDED if isinstance(error, dropped) else Kind.ERROR


def _is_to_be_retried(policy: Any, error: BaseException) -> bool:
    listed: Errors | None = getattr(policy, "retry_on", None)
    if isinstance(error, Retry):
        return True
    if isinstance(error, TaskTimeout):
        return TaskTimeout in (listed or ())
    return listed is None or isinstance(error, listed)


def _attempts_granted(policy: Any, error: BaseException) -> int:
    undeclared = UNDECLARED_ATTEMPTS if isinstance(error, Retry) else 1
    return _max_attempts(policy) or undeclared


def _max_attempts(policy: Any) -> int | None:
    # Neither a task that is gone nor one of another backend has declared any.
    return getattr(policy, "max_attempts", None)


def _is_too_late(
    policy: Any, moment: datetime | None, enqueued_at: datetime | None
) -> bool:
    if moment is None or enqueued_at is None:
        return False
    ends = expires_at(policy, enqueued_at)
    return ends is not None and moment > ends


def _after_delay(
    policy: Any, error: BaseException, attempts: int, now: datetime, who: str
) -> datetime | None:
    if isinstance(error, Retry) and error.after is not None:
        return now + min(max(error.after, _NOTHING), LONGEST_DELAY)
    return _after_backoff(policy, error, attempts, now, who)


def _after_backoff(
    policy: Any, error: BaseException, attempts: int, now: datetime, who: str
) -> datetime | None:
    backoff: Backoff = getattr(policy, "backoff", None) or DEFAULT_BACKOFF
    try:
        delay = _sensible(backoff(error, attempts))
    except BaseException:
        # Code of the user, who may have raised anything. The attempt is over; whether
        # there is another one must not depend on this.
        logger.exception(
            "The backoff of %s failed: the default is used instead.",
            who or getattr(policy, "module_path", policy),
        )
        delay = DEFAULT_BACKOFF(error, attempts)
    return None if delay is None else now + delay


def _sensible(delay: Any) -> timedelta | None:
    if delay is None:
        return None
    if not isinstance(delay, timedelta):
        raise TypeError(f"A backoff returns a timedelta or None, not {delay!r}.")
    if not _NOTHING <= delay <= LONGEST_DELAY:
        raise ValueError(f"A backoff returned a delay that is out of reach: {delay!r}.")
    return delay
