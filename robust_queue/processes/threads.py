"""Threads: the lane of synchronous tasks.

While tasks are tiny, one thread goes from one to the next and the others sleep: several
would only wait for each other, since Python runs one at a time. As soon as a task is
not tiny, the thread that runs it calls another one first.
"""

import math
import threading
import time
from collections import deque
from contextlib import suppress
from contextvars import copy_context
from functools import partial

from django.db import connections

from robust_queue.aliases import know_backends
from robust_queue.lifecycle.perform import Attempt, Performed
from robust_queue.reports import report

from .connections import clean_up_after_task, prepare_for_task
from .exits import leave_out_of_memory
from .guards import Guard
from .held import Held, first_of
from .lanes import Duty, Lane
from .limits import Limits, timed_out
from .pool import Errand, Pool

# Seconds that a tiny task takes at most, and that telling others of ends may take.
TINY = 0.0001
SHORT = 0.01
# A thread that has not come around for that long takes longer than it used to.
NUDGE = 0.005

MOST_NAMES = 1000  # of tasks; stored text may name any number of them
_ERRANDS = ""  # under which the duration of errands is known, as tasks are by path
_OF_LATEST = 0.05  # how much the latest duration counts


class Threads(Lane):
    """Runs each job in a thread, from its beginning to its end."""

    def __init__(self, size: int, duty: Duty) -> None:
        super().__init__(size, duty)
        # In the context of the thread itself: what is kept in that of a job is gone
        # with it, and would be made anew for each.
        self._pool = Pool(size, prepare=know_backends)
        self._errands: deque[Errand] = deque()
        self._lock = threading.Lock()
        self._awake = 0  # threads that were called, and have not run out of work
        self._called = 0  # those of them that are yet to come
        self._at_hand: set[int] = set()  # those that will look for work in no time
        self._durations: dict[str, float] = {}
        self._begun = self._begun_before = 0
        self._begun_at = 0.0
        self._limits = Limits()

    def start(self) -> None:
        self._pool.start()

    def resize(self, size: int) -> int:
        """Run so many at a time from now on; return how many there could be had.

        Nobody is interrupted: threads that are too many leave when their task is over.
        """
        self._size = self._pool.resize(size)
        self._foresight.resize(self._size)
        return self._size

    def finish(self, timeout: float) -> None:
        self._pool.finish(timeout)
        self._limits.finish(timeout)

    def submit(self, errand: Errand) -> None:
        self._errands.append(errand)
        self._call()

    def run(self, held: Held) -> None:
        self._waiting.append(held)
        self._call()

    @property
    def patience(self) -> float:
        nudge_in = NUDGE if self._could_be_helped else math.inf
        return min(self._stale_in, nudge_in)

    def nudge(self) -> None:
        """Call another thread if those at hand have not come around for a while."""
        now = time.monotonic()
        if self._begun != self._begun_before or not self._could_be_helped:
            self._begun_before, self._begun_at = self._begun, now
        elif now > self._begun_at + NUDGE:
            with self._lock:
                self._at_hand.clear()
            self._call()
            self._begun_at = now

    @property
    def _could_be_helped(self) -> bool:
        return self._has_work and self._awake < self._size

    @property
    def _has_work(self) -> bool:
        return bool(self._waiting or self._errands)

    def _call(self) -> None:
        """Have a thread look for work, unless one will do so anyway."""
        with self._lock:
            if self._awake >= self._size or self._called or self._at_hand:
                return
            self._awake += 1
            self._called += 1
        self._pool.submit(self._work)

    # ── In the threads ─────────────────────────────────────────────────────────

    def _work(self) -> None:
        me = threading.get_ident()
        with self._lock:
            self._called -= 1
            self._at_hand.add(me)
        has_done_tiny = False
        while self._is_needed(me, has_done_tiny=has_done_tiny):
            # What was taken back, or taken by another, is not there any more.
            if (errand := first_of(self._errands)) is not None:
                has_done_tiny = self._do(me, _ERRANDS, SHORT, errand)
            elif (held := first_of(self._waiting)) is not None:
                path = held.claim.task_path
                has_done_tiny = self._do(me, path, TINY, partial(self._run, held))

    def _is_needed(self, me: int, *, has_done_tiny: bool) -> bool:
        """Is there work, and nobody else for it? If not, this thread leaves.

        So it does if there are more of them than there should be.

        That is decided under the lock: whoever brings work looks under it who is at
        hand. Else the one could leave while the other relies on it.
        """
        if self._has_use_for_one(has_done_tiny=has_done_tiny):
            return True
        with self._lock:
            if self._has_use_for_one(has_done_tiny=has_done_tiny):
                return True
            self._awake -= 1
            self._at_hand.discard(me)
        return False

    def _has_use_for_one(self, *, has_done_tiny: bool) -> bool:
        if not (self._waiting or self._errands) or self._awake > self._size:
            return False
        return not (has_done_tiny and len(self._at_hand) > 1)

    def _do(self, me: int, name: str, most: float, action: Errand) -> bool:
        """Do something; tell whether it is known to take no longer than that.

        If it is not, another thread is called first.
        """
        begun = time.monotonic()
        is_long = self._durations.get(name, math.inf) > most
        if is_long:
            self._be_away(me)
        self._begun += 1
        try:
            action()
        except BaseException as error:
            # Even SystemExit: a thread less would be a slot less, silently.
            report(error, "a thread did something for a job")
        finally:
            self._learn(name, time.monotonic() - begun)
        if me not in self._at_hand:
            self._be_back(me)
        return not is_long

    def _be_away(self, me: int) -> None:
        with self._lock:
            self._at_hand.discard(me)
        if self._has_work:
            self._call()

    def _be_back(self, me: int) -> None:
        # From a long task, or from one that was known to be tiny and was not.
        with self._lock:
            self._at_hand.add(me)

    def _learn(self, name: str, latest: float) -> None:
        known = self._durations.get(name, latest)
        if len(self._durations) > MOST_NAMES:
            self._durations.clear()
        self._durations[name] = known + _OF_LATEST * (latest - known)

    def _run(self, held: Held) -> None:
        performed = None
        prepare_for_task()
        try:
            # What a task sets in its context is nobody else's.
            performed = copy_context().run(self._perform, held)
        except MemoryError:
            leave_out_of_memory()
        finally:
            self._end(held, performed)
        clean_up_after_task()

    def _perform(self, held: Held) -> Performed | None:
        begun = self._begin(held)
        if not isinstance(begun, Attempt):
            return begun
        if begun.policy.timeout is None:
            return begun.run()
        return self._run_until(held.ends, begun)

    def _run_until(self, ends: float, attempt: Attempt) -> Performed:
        self._limits.start()
        guard = Guard(lambda guard: self._limits.add(guard, ends))
        try:
            performed = attempt.run(guard.call)
        finally:
            self._limits.remove(guard)
        if not guard.has_struck:
            return performed
        # Whatever it has come to: it may have stopped halfway, holding anything.
        self._duty.recycle(f"{attempt.claim.task_path} was interrupted in its thread")
        for connection in connections.all(initialized_only=True):
            with suppress(Exception):
                connection.close()
        return timed_out(attempt, performed)
