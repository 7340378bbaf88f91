"""Why a call cannot be enqueued ──▶ the problem that tells it."""

from collections.abc import Sequence

from robust_queue.exceptions import (
    DuplicateTaskError,
    PayloadTooLargeError,
    RequestReusedError,
)

from .problems import Problem, conflict, invalid


def problem_of(refusal: Exception) -> Problem:
    """What to answer when a new job was refused."""
    match refusal:
        case PayloadTooLargeError():
            return Problem(413, "too_large", str(refusal))
        case DuplicateTaskError():
            return conflict(_taken(refusal), "duplicate")
        case RequestReusedError():
            return conflict(str(refusal), "request_reused")
        case _:
            return invalid(str(refusal), "bad_call")


def refused_among(ids: Sequence[str], refusal: Exception) -> Sequence[int]:
    """The places of those that were refused, of jobs that were to be enqueued."""
    match refusal:
        case RequestReusedError():
            return [at for at in refusal.places if at < len(ids)]
        case DuplicateTaskError() if refusal.refused_id in ids:
            return [ids.index(refusal.refused_id)]
    return ()


def _taken(refusal: DuplicateTaskError) -> str:
    # Its own words have the key, which is made from arguments.
    other = f"job {refusal.result_id}" if refusal.result_id else "another job"
    return f"The task is unique, and {other} is there for the same call."
