"""Coroutines: the lane of ``async def`` tasks, hundreds of them on one event loop.

Helper threads do what is synchronous about a job: one begins it, which may query, and
others announce its end. Nothing is started before the first coroutine comes.
"""

from collections.abc import Iterable
from contextvars import Context
from functools import partial
from inspect import iscoroutinefunction
from uuid import UUID

from robust_queue.compat import AnyTask
from robust_queue.lifecycle.perform import Attempt, Performed

from .connections import clean_up_after_task
from .flights import EventLoop
from .lanes import Duty, Held, Lane
from .pool import Errand, Pool

# Whoever listens for the end of a job may take long, and its place is free only then.
ANNOUNCERS = 3


def is_coroutine(task: AnyTask | None) -> bool:
    """Is this a task that can be awaited?"""
    return task is not None and iscoroutinefunction(task.func)


def _started(pool: Pool) -> Pool:
    """Only then is it worth to be kept."""
    pool.start()
    return pool


class Coroutines(Lane):
    """Runs jobs as coroutines of one thread."""

    def __init__(self, slots: Iterable[int], duty: Duty) -> None:
        super().__init__(slots, duty)
        self._beginner: Pool | None = None
        self._helpers: Pool | None = None
        self._loop: EventLoop | None = None

    def submit(self, errand: Errand) -> None:
        """Do it in one of the helper threads."""
        if self._helpers is None:
            self._helpers = _started(Pool(ANNOUNCERS, "robust_queue announcer"))
        self._helpers.submit(errand)

    def run(self, held: Held) -> None:
        self._loop = self._loop or EventLoop()
        if self._beginner is None:
            self._beginner = _started(Pool(1, "robust_queue beginner"))
        self._beginner.submit(partial(self._run, held, self._loop))

    def cancel(self, job_id: UUID) -> bool:
        """Cancel the coroutine of a job; False if it is not in flight."""
        return self._loop is not None and self._loop.cancel(job_id)

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

    def _run(self, held: Held, loop: EventLoop) -> None:
        # Its own from the beginning: whatever is set in it is nobody else's.
        context = Context()
        begun: Attempt | Performed | None = None
        try:
            begun = context.run(self._begin, held)
        finally:
            if isinstance(begun, Attempt):
                loop.launch(begun, context, land=partial(self._end, held))
            else:
                self._end(held, begun)
        clean_up_after_task()
