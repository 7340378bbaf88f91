"""A solitary process: it runs one task at a time, and nobody else lives in it.

It has one thread, so that tasks may fork. It is told of its next task on the wire and
tells what has come of it. A task that leaves something behind is the last one.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from signal import SIG_DFL, SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGURG
from types import FrameType
from typing import Any, NoReturn

from asgiref.sync import async_to_sync
from django.utils import timezone

from robust_queue import policies, registry
from robust_queue.aliases import know_backends
from robust_queue.context import Running, enter
from robust_queue.lifecycle.failure import message_of
from robust_queue.lifecycle.perform import Attempt, Performed, begin
from robust_queue.lifecycle.policy import terms_for
from robust_queue.lifecycle.unique import unlock_at_start
from robust_queue.processes import titles
from robust_queue.processes.connections import clean_up_after_task, prepare_for_task
from robust_queue.processes.coroutines import is_coroutine
from robust_queue.processes.exits import ExitCode, leave
from robust_queue.processes.guards import Interrupt
from robust_queue.processes.memory import rss
from robust_queue.reports import report
from robust_queue.stores.rows import Claim
from robust_queue.transactions import connected, keep_account

from . import kernel
from .wire import Line, Message, claim_of, plain_outcome

# A process that has grown by more, or has run so many tasks, is not used again.
MOST_GROWTH = 64 * 1024**2
MOST_TASKS = 1000
BRIEFLY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for every task of a worker that runs in a process of its own."""

    database: str
    worker_name: str
    memory_limit: int | None = None
    cpu_limit: timedelta | None = None


def live(line: Line, output: int, terms: Terms, *, nursery_pid: int) -> NoReturn:
    """Be such a process, to the end."""
    code: int = ExitCode.BROKEN
    try:
        _settle_in(output, nursery_pid)
        Solitary(line, terms).live()
        code = ExitCode.DONE
    except MemoryError:
        code = ExitCode.OUT_OF_MEMORY
    except BaseException as error:
        report(error, "a task was run in a process of its own")
    finally:
        leave(code)


def _settle_in(output: int, nursery_pid: int) -> None:
    # A group of its own, which can be ended as a whole.
    os.setsid()
    kernel.adopt_orphans()
    kernel.hear_of_parent(SIGKILL)
    if os.getppid() != nursery_pid:
        os._exit(ExitCode.BROKEN)  # it died before anybody was to hear of it
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    # By the line: what is in a buffer is gone with a process that is killed.
    sys.stdout = _text(1)
    sys.stderr = _text(2)
    titles.show("robust_queue: isolated task")


def _text(descriptor: int) -> Any:
    return open(descriptor, "w", buffering=1, closefd=False, errors="backslashreplace")


class Solitary:
    """Runs what it is told to, until it had better not run anything more."""

    def __init__(self, line: Line, terms: Terms) -> None:
        self._line = line
        self._terms = terms
        self._running: Running | None = None
        # Ends the task, while it is being called or awaited.
        self._interrupt: Callable[[], object] | None = None
        self._is_to_end = False
        self._tasks = 0
        self._size_at_birth = rss()

    def live(self) -> None:
        self._heed_signals()
        if self._terms.memory_limit:
            kernel.limit_memory(self._terms.memory_limit)
        keep_account()
        know_backends()
        while (message := self._line.wait()) is not None:
            if "claim" in message and self._serve(claim_of(message["claim"])):
                break

    def _serve(self, claim: Claim) -> str:
        """Run a task; return why it was the last one, if it was."""
        self._running = Running(claim)
        self._tasks += 1
        performed = self._run(claim, self._running)
        self._running = None
        # Whatever goes wrong from here on: what the task has come to must be told.
        reason = self._tidy_up() or self._reason_to_leave()
        outcome = plain_outcome(performed.outcome) if performed else None
        said = message_of(performed.error) if performed and performed.error else ""
        self._line.say(outcome=outcome, said=said, leaves=reason, pid=os.getpid())
        return reason

    def _run(self, claim: Claim, running: Running) -> Performed | None:
        if self._terms.cpu_limit:
            kernel.limit_cpu(self._terms.cpu_limit.total_seconds())
        prepare_for_task()
        # What a task sets in its context is not the next one's.
        return copy_context().run(self._perform, claim, running)

    def _tidy_up(self) -> str:
        """Clean up after a task; return what went wrong with that, if anything did."""
        try:
            clean_up_after_task()
            sys.stdout.flush()
            sys.stderr.flush()
        except Exception as error:
            report(error, "it was cleaned up after an isolated task")
            return f"cleaning up failed with {type(error).__name__}"
        return ""

    def _perform(self, claim: Claim, running: Running) -> Performed | None:
        """None if it could not be begun, which is no fault of the task."""
        terms = terms_for(claim)
        running.ends_at = policies.ends_at(
            terms.policy, claim.enqueued_at, now=timezone.now()
        )
        try:
            enter(claim, running)
            unlock_at_start(claim, database=self._terms.database)
            begun = begin(
                claim,
                database=self._terms.database,
                worker_id=self._terms.worker_name,
                terms=terms,
            )
        except MemoryError:
            raise  # it would not be begun the next time either
        except Exception as error:
            report(error, f"job {claim.job_id} was to be begun")
            return None
        return self._complete(begun) if isinstance(begun, Attempt) else begun

    def _complete(self, attempt: Attempt) -> Performed:
        if is_coroutine(registry.find(attempt.claim.task_path)):
            # What a coroutine hands to sync_to_async() is run by this very thread.
            return async_to_sync(self._await)(attempt)
        return attempt.run(self._call)

    async def _await(self, attempt: Attempt) -> Performed:
        loop, me = asyncio.get_running_loop(), asyncio.current_task()
        if me is not None:
            self._interrupt = partial(loop.call_soon_threadsafe, me.cancel)
        try:
            if self._is_to_end:
                return attempt.failed(Interrupt())
            return await attempt.run_async()
        finally:
            self._interrupt = None

    def _call(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        try:
            self._interrupt = _raise_interrupt
            if self._is_to_end:
                raise Interrupt
            return function(*args, **kwargs)
        finally:
            self._interrupt = None

    def _reason_to_leave(self) -> str:
        """Why nothing else is to be run here; empty if there is no reason."""
        if kernel.has_children():
            return "left processes behind, which were ended"
        if _has_other_threads():
            return "left a thread behind"
        if any(each.in_atomic_block for each in connected()):
            return "left a transaction open"
        if rss() > self._size_at_birth + MOST_GROWTH:
            return "had grown large"
        if self._is_to_end or self._tasks >= MOST_TASKS:
            return "left"
        return ""

    # ── Signals ────────────────────────────────────────────────────────────────

    def _heed_signals(self) -> None:
        for number in (SIGINT, SIGQUIT, SIGHUP, SIGCHLD):
            signal.signal(number, SIG_DFL)
        signal.signal(SIGTERM, self._end)
        # Ignored by everybody who does not know it, above all by programs of the task.
        signal.signal(SIGURG, self._listen)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _end(self, number: int, frame: FrameType | None) -> None:
        """The time is up, or so somebody says.

        Those who stop a service may send this to all of its processes. Whether the
        worker means it is told on the wire.
        """
        self._hear()
        if self._interrupt and self._is_to_end:
            self._interrupt()

    def _listen(self, number: int, frame: FrameType | None) -> None:
        self._hear()

    def _hear(self) -> None:
        if self._running is None:
            return  # what is on the wire is the next task
        try:
            for message in self._line.arrived():
                self._heed(message, self._running)
        except EOFError:
            self._is_to_end = True

    def _heed(self, message: Message, running: Running) -> None:
        if message.get("cancel"):
            running.is_cancelled = True
        if message.get("end"):
            self._is_to_end = True


def _has_other_threads() -> bool:
    """Does any go on? That of an event loop which is over has a moment to end."""
    me, ends = threading.current_thread(), time.monotonic() + BRIEFLY
    for thread in threading.enumerate():
        if thread is not me:
            thread.join(max(ends - time.monotonic(), 0))
    return threading.active_count() > 1


def _raise_interrupt() -> None:
    raise Interrupt
