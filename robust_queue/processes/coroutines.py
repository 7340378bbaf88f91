"""Coroutines: the lane of ``async def`` tasks, hundreds of them on one event loop.

A helper thread does what is synchronous about a job: it begins it, which may query, and
announces its end. Nothing is started before the first coroutine comes.
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


def is_coroutine(task: AnyTask | None) -> bool:
    """Is this a task that can be awaited?"""
    return task is not None and iscoroutinefunction(task.func)


class Coroutines(Lane):
    """Runs jobs as coroutines of one thread."""

    def __init__(self, slots: Iterable[int], duty: Duty) -> None:
        super().__init__(slots, duty)
        self._helper: Pool | None = None
        self._loop: EventLoop | None = None

    def submit(self, errand: Errand) -> None:
        """Do it in the helper thread, one after the other."""
        if self._helper is None:
            self._helper = Pool(1, "robust_queue helper")
            self._helper.start()
        self._helper.submit(errand)

    def run(self, held: Held) -> None:
        self._loop = self._loop or EventLoop()
        self.submit(partial(self._run, held, self._loop))

    def cancel(self, job_id: UUID) -> bool:
        """Cancel the coroutine of a job; False if it is not in flight."""
        return self._loop is not None and self._loop.cancel(job_id)

    def give_up(self, *, within: float) -> None:
        """Cancel what is in flight; what ends for that reason has come to nothing."""
        if self._loop is not None:
            self._loop.give_up(within=within)

    def finish(self, timeout: float) -> None:
        """End the threads, as far as there are any."""
        if self._helper is not None:
            self._helper.finish(timeout)
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
