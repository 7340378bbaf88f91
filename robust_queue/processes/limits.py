"""Limits: which tasks in threads have to end when, and who sees to it.

A thread of its own interrupts those whose time is up: the main thread may wait for the
database meanwhile. Where not even that can run, because some C code holds on to the
interpreter, the supervisor ends the whole process a little later: the page tells when.
"""

import math
import threading

from robust_queue.exceptions import TaskTimeout
from robust_queue.lifecycle.perform import Attempt, Performed
from robust_queue.policies import Policy
from robust_queue.reports import report

from . import clock
from .guards import Guard
from .wakeup import Wakeup

LONGEST_NAP = 60.0


class Limits:
    """Filled by the threads of tasks, looked after by one that does nothing else."""

    def __init__(self) -> None:
        self._ends: dict[Guard, float] = {}
        # No lock: an interrupt could strike whoever holds it.
        self._wakeup = Wakeup()
        self._next_look = 0.0
        self._is_over = False
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look after them, with the first one that is limited."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="robust_queue limits", daemon=True
                )
                self._thread.start()

    def finish(self, timeout: float) -> None:
        self._is_over = True
        self._wakeup.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def add(self, guard: Guard, ends: float) -> None:
        """Its time is up then. Called by the guard itself, when it is ready for it."""
        self._ends[guard] = ends
        if ends < self._next_look:
            self._wakeup.set()

    def remove(self, guard: Guard) -> None:
        self._ends.pop(guard, None)

    # ── In the thread ──────────────────────────────────────────────────────────

    def _run(self) -> None:
        while not self._is_over:
            # First: who comes meanwhile, and is earlier than what is known, wakes it.
            self._next_look = math.inf
            self._next_look = look = min(self._earliest(), clock.now() + LONGEST_NAP)
            self._wakeup.wait(look - clock.now())
            try:
                self._strike()
            except Exception as error:
                report(error, "a task that is late was to be interrupted")

    def _earliest(self) -> float:
        ends = [at for guard, at in self._copy() if not guard.has_struck]
        return min(ends, default=math.inf)

    def _strike(self) -> None:
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
