"""``Job``: a claimed job in the hands of a handler, and how it ends."""

import json
import threading
import time
import traceback
from collections.abc import Callable
from datetime import datetime
from typing import Any

from .errors import Cancelled, Discard, Retry, TimedOut
from .told import Work

Handler = Callable[..., Any]
# As it is reported.
Outcome = dict[str, Any]

# What the queue takes.
LONGEST_TYPE, LONGEST_TEXT = 255, 65_536


class Job:
    """What a handler may know of its job, and whether it had better end."""

    def __init__(self, work: Work) -> None:
        self.id = work.id
        self.token = work.token
        self.task = work.task
        self.queue = work.queue
        self.args = work.args
        self.kwargs = work.kwargs
        # Counted from one.
        self.attempt = work.attempt
        self.enqueued_at = datetime.fromisoformat(work.enqueued_at)
        # By the clock of the queue. From then on the job counts as timed out.
        self.deadline = work.deadline and datetime.fromisoformat(work.deadline)
        self._ends_at: float | None = None
        if work.seconds_left is not None:
            # Clocks are set, and those of two machines differ: this one only counts.
            self._ends_at = work.heard_at + work.seconds_left
        self._is_to_end = threading.Event()

    @property
    def remaining(self) -> float | None:
        """Seconds until its deadline, whatever the clock here shows."""
        return None if self._ends_at is None else self._ends_at - time.monotonic()

    @property
    def is_late(self) -> bool:
        """Is its deadline over?"""
        return self.remaining is not None and self.remaining <= 0

    @property
    def is_cancelled(self) -> bool:
        """Is it to end: because somebody has said so, or is it lost to this worker?"""
        return self._is_to_end.is_set()

    def check(self) -> None:
        """End it, by ``Cancelled`` or ``TimedOut``, if it is to end."""
        if self.is_cancelled:
            raise Cancelled("It was cancelled.")
        if self.is_late:
            raise TimedOut("Its time is up.")

    def wait(self, seconds: float) -> bool:
        """Sleep for so long, or until it is to end; is it?"""
        return self._is_to_end.wait(seconds)

    def cancel(self) -> None:
        """Have it end, as soon as its handler looks."""
        self._is_to_end.set()


def perform(job: Job, handler: Handler | None) -> Outcome:
    """Call the handler; whatever it does becomes an outcome that can be sent."""
    if handler is None:
        return _unknown(job)
    try:
        result = handler(job, *job.args, **job.kwargs)
        # Refused here, with the traceback of this job, and not together with others.
        return outcome(job, "succeeded", result=_as_sent(result))
    # Also one that would end its thread.
    except BaseException as error:
        return _raised(job, error)


def outcome(job: Job, end: str, **facts: Any) -> Outcome:
    """How the job has ended."""
    return {"job": job.id, "token": job.token, "outcome": end, **facts}


def failed(job: Job, error: BaseException, **facts: Any) -> Outcome:
    """That it has failed, and of what."""
    lines = "".join(traceback.format_exception(error))
    told = {
        "type": _fit(type(error).__qualname__, LONGEST_TYPE),
        "message": _fit(_message_of(error), LONGEST_TEXT),
        # What was raised stands at the end.
        "traceback": _fit(lines[-LONGEST_TEXT:], LONGEST_TEXT),
    }
    return outcome(job, "failed", error=told, **facts)


def _raised(job: Job, error: BaseException) -> Outcome:
    match error:
        case Cancelled():
            return outcome(job, "cancelled")
        case TimedOut():
            return outcome(job, "timed_out")
        case Retry(after=seconds):
            return failed(job, error, retry_after=seconds)
        case Discard():
            return failed(job, error, final=True)
    return failed(job, error)


def _as_sent(result: Any) -> Any:
    """What arrives of it: somebody may go on to change what was returned."""
    return None if result is None else json.loads(json.dumps(result, allow_nan=False))


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    # It is somebody's code, and the job has to end.
    except BaseException as another:
        return f"<it has no text: {type(another).__name__}>"


def _unknown(job: Job) -> Outcome:
    """It fails, as its policy has it.

    To give it back would have it taken again at once, by this very worker, for ever. A
    task with attempts left is tried again later, perhaps by a worker that knows it.
    """
    message = f"This worker has no handler for the task {job.task!r}."
    error = {"type": "UnknownTask", "message": _fit(message, LONGEST_TEXT)}
    return outcome(job, "failed", error=error)


def _fit(text: str, length: int) -> str:
    # Half a character of UTF-16 cannot be sent.
    return text.encode(errors="replace").decode()[:length]
