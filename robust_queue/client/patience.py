"""Calls that are made again, a little later each time, until they are answered."""

import logging
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

from .errors import ApiError, UnreachableError

T = TypeVar("T")

logger = logging.getLogger("robust_queue.client")

FIRST, LONGEST = 0.1, 10.0
PASSING = frozenset({429, 502, 503, 504})
# Whoever is told this does not hear anything else by asking again.
FINAL = frozenset({400, 401, 403, 413, 422})


def is_passing(error: ApiError) -> bool:
    """May it be better in a moment?"""
    return error.status in PASSING or isinstance(error, UnreachableError)


def is_not_final(error: ApiError) -> bool:
    """May a worker that is known hear something else if it asks again?"""
    return error.status not in FINAL


def is_no_refusal(error: ApiError) -> bool:
    """May it be let in? Who finds nothing at the address has got something wrong."""
    return is_passing(error) or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR


@dataclass(frozen=True, slots=True)
class Patience:
    """For how long, and after which errors, a call is made again."""

    seconds: float
    is_passing: Callable[[ApiError], bool] = is_passing
    # Sleeps; true if there is no time to wait any more.
    nap: Callable[[float], object] = time.sleep
    # Seconds that a pause has, unless the queue asks for more.
    longest: float = LONGEST

    def __call__(self, call: Callable[[], T]) -> T:
        """What the call returns at last; its error if that does not pass in time."""
        until = time.monotonic() + self.seconds
        pauses = _pauses(self.longest)
        while True:
            try:
                return call()
            except ApiError as error:
                pause = max(next(pauses), error.retry_after or 0)
                is_late = time.monotonic() + pause > until
                if is_late or not self.is_passing(error):
                    raise
                logger.warning("%s Trying again in %.1f s.", error, pause)
                if self.nap(pause):
                    raise


def _pauses(longest: float) -> Iterator[float]:
    """Longer and longer, and not the same for all who wait for the same server."""
    pause = FIRST
    while True:
        pause = min(pause, longest)
        yield pause * random.uniform(0.5, 1)  # noqa: S311 (no secret)
        pause *= 2
