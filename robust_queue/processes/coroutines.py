"""Coroutines: the lane of ``async def`` tasks, hundreds of them on one event loop.

They begin and end on the loop itself. Only where the beginning of a job may query or
call somebody else's code, a helper thread does it; others announce ends. Nothing is
started before the first coroutine comes.
"""

import threading
from contextvars import Context
from functools import lru_cache, partial
from inspect import iscoroutinefunction

from robust_queue.arguments import may_query
from robust_queue.compat import AnyTask
from robust_queue.context import Running, enter
from robust_queue.lifecycle.perform import Attempt, Performed
from robust_queue.stores.rows import Claim

from .connections import clean_up_after_task, prepare_for_task
from .flights import EventLoop
from .held import Held, first_of
from .lanes import Duty, Lane
from .pool import Errand, Pool

# Whoever listens for the end of a job may take long, and its place is free only then.
ANNOUNCERS = 3
# How many begin, and perhaps end, before others on the loop have a turn.
AT_ONCE = 50


def is_coroutine(task: AnyTask | None) -> bool:
    """Is this a task that can be awaited?"""
    return task is not None and _is_coroutine_function(task.func)


_is_coroutine_function = lru_cache(maxsize=1024)(iscoroutinefunction)


def _started(pool: Pool) -> Pool:
    """Only then is it worth to be kept."""
    pool.start()
    return pool


class Coroutines(Lane):
    """Runs jobs as coroutines of one thread."""

    def __init__(self, size: int, duty: Duty) -> None:
        super().__init__(size, duty)
        self._beginner: Pool | None = None
        self._helpers: Pool | None = None
        self._loop: EventLoop | None = None
        self._founding = threading.Lock()
        # Begun and not ended. Changed by the thread of the loop alone.
        self._running = 0
        self._is_beginning = False

    def submit(self, errand: Errand) -> None:
        """Do it in one of the helper threads."""
        if self._helpers is None:
            self._helpers = _started(Pool(ANNOUNCERS, "robust_queue announcer"))
        self._helpers.submit(errand)

    def run(self, held: Held) -> None:
        # Somebody else may be told to go on with another one in the same moment.
        with self._founding:
            loop = self._loop = self._loop or EventLoop()
            if self._beginner is None:
                self._beginner = _started(Pool(1, "robust_queue beginner"))
        self._waiting.append(held)
        loop.call(partial(self._run_waiting, loop, self._beginner))

    def _cancel_running(self, held: Held, running: Running) -> None:
        """Cancel its coroutine as well."""
        super()._cancel_running(held, running)
        if self._loop is not None:
            self._loop.cancel(held.claim.job_id)

    def give_up(self, *, within: float) -> None:
        """Cancel what is in flight; what ends for that reason has come to nothing."""
        if self._loop is not None:
            self._loop.give_up(within=within)

    def finish(self, timeout: float) -> None:
        """End the threads, as far as there are any."""
        for helpers in (self._beginner, self._helpers):
            if helpers is not None:
                helpers.finish(timeout)
        if self._loop is not None:
            self._loop.finish(timeout)

    # ── On the loop ────────────────────────────────────────────────────────────

    def _run_waiting(self, loop: EventLoop, beginner: Pool) -> None:
        """Begin what waits. Not again from within: one may end as soon as it begins."""
        if self._is_beginning:
            return
        self._is_beginning = True
        try:
            for _ in range(AT_ONCE):
                held = first_of(self._waiting) if self._running < self._size else None
                if held is None:
                    return
                self._begin_one(held, loop, beginner)
        finally:
            self._is_beginning = False
        # Those in flight have a turn in between.
        loop.call_later(partial(self._run_waiting, loop, beginner))

    def _begin_one(self, held: Held, loop: EventLoop, beginner: Pool) -> None:
        self._running += 1
        # Its own from the beginning: whatever is set in it is nobody else's.
        context = loop.new_context()
        # Where its beginning may query, or call what others have written.
        if self._is_heard or _may_query(held.claim):
            beginner.submit(partial(self._begin_aside, held, context, loop))
            return
        begun: Attempt | Performed | None = None
        try:
            begun = context.run(self._begin, held)
        finally:
            self._launch(held, begun, context, loop)

    def _launch(
        self,
        held: Held,
        begun: Attempt | Performed | None,
        context: Context,
        loop: EventLoop,
    ) -> None:
        if isinstance(begun, Attempt):
            loop.take_off(
                begun, context, running=held.running, land=partial(self._land, held)
            )
        else:
            self._land(held, begun)

    def _land(self, held: Held, performed: Performed | None) -> None:
        self._running -= 1
        self._end(held, performed)
        if self._waiting and self._loop and self._beginner:
            self._run_waiting(self._loop, self._beginner)

    # ── In the helper thread ───────────────────────────────────────────────────

    def _begin_aside(self, held: Held, context: Context, loop: EventLoop) -> None:
        begun: Attempt | Performed | None = None
        prepare_for_task()
        try:
            begun = context.run(self._begin, held)
        finally:
            loop.call_later(partial(self._launch_later, held, begun, context, loop))
        clean_up_after_task()

    def _launch_later(
        self,
        held: Held,
        begun: Attempt | Performed | None,
        context: Context,
        loop: EventLoop,
    ) -> None:
        # Language and time zone are known in the thread only in which they were set.
        context.run(enter, held.claim, held.running)
        self._launch(held, begun, context, loop)


def _may_query(claim: Claim) -> bool:
    # Of one that was attempted before, the earlier attempts are read; of a unique one
    # the key may be let go of.
    return claim.attempts > 1 or bool(claim.unique_key) or may_query(claim.arguments)
