"""Reports are sent together. One that is refused must not keep the others back."""

import logging
from collections.abc import Sequence

from .errors import ApiError
from .jobs import Outcome
from .registered import Registered

logger = logging.getLogger("robust_queue.client")

# Malformed, too large, or not as it has to be: to send it again does not help.
REFUSED = frozenset({400, 413, 422})


def send(registered: Registered, reports: Sequence[Outcome]) -> bool:
    """Send them, in as many parts as it takes. Is the worker alive?"""
    try:
        is_alive, answers = registered.report(reports)
    except ApiError as refusal:
        if refusal.status not in REFUSED:
            raise
        return _send_parts(registered, reports, refusal)
    for each in answers:
        if is_alive and not each.recorded:
            logger.warning("Job %s was not this worker's any more.", each.job)
    return is_alive


def _send_parts(
    registered: Registered, reports: Sequence[Outcome], refusal: ApiError
) -> bool:
    if len(reports) == 1:
        return _send_without(registered, reports[0], refusal)
    middle = len(reports) // 2
    halves = reports[:middle], reports[middle:]
    # To both, whatever the first one brings.
    alive = [send(registered, half) for half in halves]
    return all(alive)


def _send_without(registered: Registered, report: Outcome, refusal: ApiError) -> bool:
    """Have the job fail of what the queue says of its outcome."""
    error = {"type": "OutcomeRefused", "message": str(refusal)}
    named = {"job": report["job"], "token": report["token"]}
    is_alive, _ = registered.report([{**named, "outcome": "failed", "error": error}])
    return is_alive
