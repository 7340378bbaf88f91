"""Limits: which tasks in threads have to end when, and who sees to it.

The threads tell when a limited task begins; the main thread interrupts those whose time
is up. Where it cannot, because some C code holds on to the interpreter, the supervisor
ends the whole process a little later: the page tells it when.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from robust_queue.exceptions import TaskTimeout
from robust_queue.lifecycle.perform import Attempt, Performed
from robust_queue.policies import Policy

from . import clock
from .guards import Guard


class Limits:
    """Filled by the threads, looked after by the main thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._ends: dict[Guard, float] = {}

    @contextmanager
    def guarded(self, seconds: float) -> Iterator[Guard]:
        """A guard for a task that has so long. To be used in its thread."""
        guard = Guard()
        self._ends[guard] = clock.now() + seconds
        # The main thread may be about to sleep for longer than that.
        self._wake()
        try:
            yield guard
        finally:
            del self._ends[guard]

    @property
    def patience(self) -> float:
        """Seconds until the next one has to end."""
        ends = [at for guard, at in self._copy() if not guard.has_struck]
        return min(ends, default=math.inf) - clock.now()

    def strike(self) -> None:
        """Interrupt those whose time is up, each of them once."""
        now = clock.now()
        for guard, at in self._copy():
            if at <= now:
                guard.strike()

    def _copy(self) -> list[tuple[Guard, float]]:
        # In one step: threads add and remove theirs meanwhile.
        return list(self._ends.items()) if self._ends else []


def timed_out(attempt: Attempt, performed: Performed) -> Performed:
    """What an attempt has come to that was ended because its time was up."""
    error = TaskTimeout(f"It took longer than {attempt.policy.timeout}.")
    if performed.error is not None:
        # Where the task was by then.
        error = error.with_traceback(performed.error.__traceback__)
    return attempt.failed(error)


def end_of(policy: Policy) -> float:
    """When the time of an attempt that begins now is up, by the clock of trust."""
    if policy.timeout is None:
        return math.inf
    return clock.now() + policy.timeout.total_seconds()
