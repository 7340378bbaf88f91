"""Flights: coroutines on an event loop that nothing they do can end."""

import asyncio
import logging
import sys
import threading
from asyncio import AbstractEventLoop, CancelledError, Task, TimerHandle
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from asgiref.sync import AsyncToSync
from django.db import connections

from robust_queue.aliases import know_backends
from robust_queue.context import CurrentJob, Running, job_in
from robust_queue.exceptions import TaskCancelled
from robust_queue.lifecycle.perform import Attempt, Performed

from .calls import CallThreads
from .exits import leave_out_of_memory
from .limits import timed_out
from .watchdog import Watchdog

logger = logging.getLogger("robust_queue")

LAST_WORDS = 0.5
# Seconds between two calls to one that does not end although its time is up.
BETWEEN_REMINDERS = 1.0
# Python 3.11 begins every task with a turn of the loop.
_AT_ONCE: dict[str, Any] = {"eager_start": True} if sys.version_info >= (3, 12) else {}


@dataclass(slots=True, eq=False)
class Flight:
    """An attempt on its way, and whom to tell when it has landed."""

    attempt: Attempt
    context: Context
    land: Callable[[Performed | None], None]
    task: Task[Performed] | None = None
    clock: TimerHandle | None = None
    # Why it was cancelled, if it was.
    is_late: bool = False
    is_unwanted: bool = False

    def cancel(self) -> None:
        """End it where it waits. On the loop, so never while its task is made."""
        if self.task is not None:
            self.task.cancel()

    def be_unwanted(self) -> None:
        """Somebody has asked for its end."""
        self.is_unwanted = True
        self.cancel()

    def set_clock(self, loop: AbstractEventLoop) -> None:
        """End it when its time is up, if that is limited."""
        limit = self.attempt.policy.timeout
        if limit is not None:
            wait = limit.total_seconds()
            self.clock = loop.call_later(wait, self._be_late, loop)

    def _be_late(self, loop: AbstractEventLoop) -> None:
        if self.task is not None and self.task.done():
            return  # it has ended in the same turn of the loop, and was first
        self.is_late = True
        self.cancel()
        # It may catch that, and wait for something else.
        self.clock = loop.call_later(BETWEEN_REMINDERS, self._be_late, loop)

    def stop_clock(self) -> None:
        if self.clock is not None:
            self.clock.cancel()


class EventLoop:
    """A loop in a thread of its own; it starts when it is made."""

    def __init__(self) -> None:
        self._loop: AbstractEventLoop = asyncio.new_event_loop()
        # Changed by the thread of the loop alone.
        self._flights: dict[UUID, Flight] = {}
        self._base = Context()
        self._is_called = False
        self._is_empty = threading.Event()
        self._is_over = False
        self._is_given_up = False
        self._calls = CallThreads(1, "robust_queue sync_to_async")
        self._other_calls = CallThreads(thread_name_prefix="robust_queue to_thread")
        self._loop.set_default_executor(self._other_calls)
        self._thread = threading.Thread(
            target=self._run, name="robust_queue event loop", daemon=True
        )
        self._watchdog = Watchdog(
            self._loop,
            self._thread,
            job_of=self._job_of,
            in_flight=self._flights.__len__,
        )
        self._start()

    def _start(self) -> None:
        try:
            self._thread.start()
        except RuntimeError:
            # No thread is to be had, and no descriptor is to be lost over it.
            self._loop.close()
            raise
        try:
            self._watchdog.start()
        except RuntimeError:
            self._end(timeout=LAST_WORDS)
            raise

    # ── From other threads ─────────────────────────────────────────────────────

    def call(self, errand: Callable[[], None]) -> None:
        """Have this done on the loop; once, if it has not come to it in between."""
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon_threadsafe(self._answer, errand)

    def call_later(self, errand: Callable[[], None]) -> None:
        """Have this done on the loop, each time."""
        self._loop.call_soon_threadsafe(errand)

    def cancel(self, job_id: UUID) -> bool:
        """Cancel the coroutine of a job; False if it is not in flight."""
        flight = self._flights.get(job_id)
        if flight is not None:
            self._loop.call_soon_threadsafe(flight.be_unwanted)
        return flight is not None

    def give_up(self, *, within: float) -> None:
        """Cancel all of them, and let them clean up for so long at most.

        One that ends for that reason has come to nothing, and nobody is told.
        """
        if self._is_over:
            return
        self._loop.call_soon_threadsafe(self._cancel_all)
        self._is_empty.wait(within)

    def finish(self, timeout: float) -> None:
        """End the threads. Nothing is in flight any more, or it is left behind."""
        if self._is_over:
            return
        self._watchdog.finish(timeout)
        self._end(timeout)
        # At the end of the interpreter nobody takes calls any more.
        with suppress(RuntimeError):
            wait([self._calls.submit(connections.close_all)], timeout)
        for calls in (self._calls, self._other_calls):
            calls.shutdown(wait=False, cancel_futures=True)

    def _end(self, timeout: float) -> None:
        self._is_over = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout)

    def _job_of(self, task: Task[Any]) -> CurrentJob | None:
        for flight in list(self._flights.values()):
            if flight.task is task:
                return job_in(flight.context)
        # One that a coroutine has started. Python 3.11 does not tell its context.
        if not hasattr(task, "get_context"):
            return None
        return job_in(task.get_context())

    # ── On the loop ────────────────────────────────────────────────────────────

    def _run(self) -> None:
        # Else it were the thread that asgiref keeps for the whole process: used before
        # a fork, it is gone behind it, and calls would wait for it for ever.
        AsyncToSync.loop_thread_executors[self._loop] = self._calls  # type: ignore[assignment]
        # On the loop, where the backends are to be found later on.
        self._loop.call_soon(know_backends, context=self._base)
        while not self._is_over:
            try:
                self._loop.run_forever()
            except BaseException:
                # SystemExit, and its like, of a task that a coroutine has started.
                logger.exception("The event loop goes on after this.")
        self._loop.run_until_complete(self._tidy_up())
        del AsyncToSync.loop_thread_executors[self._loop]
        self._loop.close()

    async def _tidy_up(self) -> None:
        """End what coroutines have started and left behind."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=LAST_WORDS)
        await self._loop.shutdown_asyncgens()

    def _answer(self, errand: Callable[[], None]) -> None:
        # First: whoever calls from now on may come too late for this time.
        self._is_called = False
        errand()

    def new_context(self) -> Context:
        """A context that is nobody else's, and knows what all have in common."""
        return self._base.copy()

    def take_off(
        self,
        attempt: Attempt,
        context: Context,
        *,
        running: Running | None = None,
        land: Callable[[Performed | None], None],
    ) -> None:
        """Run an attempt in this context, and tell what it has come to."""
        flight = Flight(attempt, context, land)
        job_id = attempt.claim.job_id
        self._flights[job_id] = flight
        self._watchdog.need()
        # Up to where it has to wait for something, which many never have to.
        task = flight.task = Task(
            attempt.run_async(),
            loop=self._loop,
            name=job_id.hex,
            context=context,
            **_AT_ONCE,
        )
        if task.done():
            self._land(flight, task)
        else:
            flight.set_clock(self._loop)
            task.add_done_callback(partial(self._land, flight))
            if running is not None and running.is_cancelled:
                # Somebody asked for that before it was in the list of flights.
                flight.be_unwanted()

    def _land(self, flight: Flight, task: Task[Performed]) -> None:
        del self._flights[flight.attempt.claim.job_id]
        flight.stop_clock()
        performed = _outcome(flight, task)
        if not self._is_given_up or (performed and not performed.error):
            flight.land(performed)
        if self._is_given_up and not self._flights:
            self._is_empty.set()

    def _cancel_all(self) -> None:
        self._is_given_up = True
        for flight in self._flights.values():
            flight.cancel()
        if not self._flights:
            self._is_empty.set()


def _outcome(flight: Flight, task: Task[Performed]) -> Performed | None:
    performed = _performed(flight, task)
    if performed is None:
        return None
    if flight.is_late:
        return timed_out(flight.attempt, performed)
    if flight.is_unwanted and isinstance(performed.error, CancelledError):
        error = TaskCancelled("The job was cancelled while it ran.")
        return flight.attempt.failed(
            error.with_traceback(performed.error.__traceback__)
        )
    return performed


def _performed(flight: Flight, task: Task[Performed]) -> Performed | None:
    if task.cancelled():
        # Before its first step. Later ones catch whatever comes.
        return flight.attempt.failed(CancelledError())
    if isinstance(task.exception(), MemoryError):
        leave_out_of_memory()
    return task.result() if task.exception() is None else None
