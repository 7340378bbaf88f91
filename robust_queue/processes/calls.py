"""Synchronous calls of coroutines: in threads that look after their connections.

Django's async ORM and ``sync_to_async`` make all of their calls in one thread, that of
the event loop they are called on; ``asyncio.to_thread`` makes them in any of several.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import thread as executors
from typing import Any, ParamSpec, TypeVar

from robust_queue import transactions
from robust_queue.context import current_job

from .connections import clean_up_after_task, prepare_for_task

P = ParamSpec("P")
R = TypeVar("R")


class CallThreads(ThreadPoolExecutor):
    """Threads in which each call finds and leaves connections as a task does.

    A transaction that one leaves open would be that of whoever calls next, which is
    another coroutine as a rule. It is rolled back, and the call raises.
    """

    def submit(
        self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[R]:
        job = current_job()
        caller = job.task if job else "A coroutine"
        future = super().submit(_attended, caller, call, *args, **kwargs)
        # They are daemons, as the thread that submits is; and nobody is to wait for
        # them at the end of a program whose jobs have been given back.
        waited_for: Any = executors._threads_queues
        for thread in self._threads:
            waited_for.pop(thread, None)
        return future


def _attended(
    caller: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Any:
    prepare_for_task()
    try:
        with transactions.closed_behind(caller):
            return call(*args, **kwargs)
    finally:
        clean_up_after_task()
