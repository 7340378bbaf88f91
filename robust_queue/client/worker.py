"""``Worker``: performs tasks with functions, and does for them what the protocol asks.

One thread asks for jobs, one tells that the worker lives, one reports, and as many as
wanted perform. What they share lies on a bench.
"""

import logging
import math
import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from uuid import uuid4

from .bench import ANSWER_IS_OLD, MOST_AT_ONCE, Bench
from .client import Client
from .errors import ApiError
from .jobs import Handler, Job, Outcome, perform
from .patience import LONGEST, Patience, is_no_refusal, is_not_final
from .registered import Registered
from .reporting import send
from .told import Pulse, Work

H = TypeVar("H", bound=Handler)

logger = logging.getLogger("robust_queue.client")

SIGNALS = (signal.SIGTERM, signal.SIGINT)
# So often says who is in a hurry that the worker is to stop.
AT_ONCE = 2
# Seconds between two looks at whether somebody is.
LOOK = 0.1
# An answer of which nothing is begun costs at least so much, also if it came at once.
PACE = 1.0
# Seconds for what runs to heed that it is to end.
HEEDS_WITHIN = 2.0
# Seconds for the last words to a queue that does not answer.
FAREWELL = 5.0


class Worker:
    """Takes jobs of some queues, and performs them in ``concurrency`` threads.

    ``queues`` are names, or beginnings of names with ``*``; none: the queues of
    external tasks that the token allows. ``prefetch`` jobs are taken ahead, for tasks
    that take milliseconds. A stop leaves ``grace`` seconds to what runs.
    """

    def __init__(
        self,
        client: Client,
        *,
        queues: Sequence[str] = (),
        concurrency: int = 1,
        prefetch: int = 0,
        name: str = "",
        version: str = "",
        wait: float = 20.0,
        ping_every: float | None = None,
        grace: float = 25.0,
    ) -> None:
        self._client = client
        self._concurrency = concurrency
        self._wait, self._ping_every, self._grace = wait, ping_every, grace
        self._facts: dict[str, Any] = {
            "queues": queues,
            "name": name,
            "version": version,
            "hostname": socket.gethostname()[:100],
            "pid": os.getpid(),
        }
        self._handlers: dict[str, Handler] = {}
        self._bench = Bench(hands=concurrency, ahead=prefetch)
        # Jobs that it asks for, at most: few where answers do not get through.
        self._at_once = MOST_AT_ONCE
        # Who handles a signal may wait for no lock, and this is one that has none.
        self._alarm: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stops = 0
        self._error: Exception | None = None
        self._is_leaving, self._is_over = threading.Event(), threading.Event()

    def task(self, name: str) -> Callable[[H], H]:
        """Have a function perform the task of that name: with the job, then its call.

        What it returns is the result. It may raise ``Retry``, ``Discard``, ``TimedOut``
        or ``Cancelled``; any other error is tried again as the task's policy has it.
        """

        def register(handler: H) -> H:
            self._handlers[name] = handler
            return handler

        return register

    def run(self) -> None:
        """Work until TERM, INT, ``stop()`` or an order from the queue. Once only.

        Raises an ApiError if the queue does not want this worker, or not any more.
        """
        with self._heeding_signals():
            hands = [self._perform] * self._concurrency
            for each in [self._fetch, self._ping, self._report, *hands]:
                threading.Thread(target=self._guarded, args=[each], daemon=True).start()
            self._alarm.get()
            self._finish()
            self._close()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Finish what runs, and leave. Said twice: leave at once."""
        self._stops += 1
        self._alarm.put(None)

    # ── Threads ────────────────────────────────────────────────────────────────

    def _fetch(self) -> None:
        while not self._is_leaving.is_set():
            room, registered = self._bench.room(), self._bench.registered
            if registered is None:
                self._register()
            elif room:
                self._dequeue(registered, room)

    def _ping(self) -> None:
        while not self._is_over.wait(self._pause()):
            registered = self._bench.registered
            if registered is not None:
                self._heed(registered, self._pinged(registered))

    def _report(self) -> None:
        while not self._is_over.is_set():
            registered, reports = self._bench.reports()
            if registered is None or not reports:
                continue
            if not send(self._until_over(registered), reports):
                self._bench.lose(registered)
            self._bench.answered(reports)

    def _perform(self) -> None:
        while (job := self._bench.next()) is not None:
            ended = perform(job, self._handlers.get(job.task))
            if ended["outcome"] != "succeeded":
                _tell(job, ended)
            self._bench.end(job, ended)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            # What was given up because the worker leaves is no trouble.
            if not self._is_leaving.is_set() or _is_final(error):
                # A worker that is half dead would be worse than none.
                self._error = error
                self._alarm.put(None)

    # ── Calls ──────────────────────────────────────────────────────────────────

    def _register(self) -> None:
        patience = Patience(math.inf, is_no_refusal, self._is_leaving.wait)
        registered = self._client.register(**self._facts, patience=patience)
        logger.info("Registered as %s.", registered.name)
        self._bench.begin(registered)

    def _dequeue(self, registered: Registered, room: int) -> None:
        asked_at = time.monotonic()
        try:
            pulse, works = self._answered(registered, min(room, self._at_once))
        except ApiError as error:
            if _is_final(error):
                raise
            # It may be this one answer that never gets through. What it tells of goes
            # back, since no ping names it.
            self._bench.expect_nothing()
            self._at_once = 1
            self._is_leaving.wait(max(PACE, error.retry_after or 0))
            return
        if works:
            self._at_once = min(2 * self._at_once, MOST_AT_ONCE)
        jobs = [Job(each) for each in works]
        is_idle = all(each.is_late for each in jobs)
        self._bench.put(registered, jobs, pulse.cancelled)
        self._heed(registered, pulse)
        if is_idle and pulse.alive:
            self._is_leaving.wait(asked_at + PACE - time.monotonic())

    def _answered(self, registered: Registered, limit: int) -> tuple[Pulse, list[Work]]:
        """What the queue says to one request, however often that has to be sent."""
        patience = Patience(ANSWER_IS_OLD, is_not_final, self._is_leaving.wait)
        patient = registered.patient(patience)
        return patient.dequeue(limit, wait=self._wait, request_id=uuid4())

    def _pinged(self, registered: Registered) -> Pulse:
        once = registered.patient(Patience(0))
        # However long the queue was away, it hears of this one as soon as it expects.
        longest = min(LONGEST, self._pause())
        patience = Patience(math.inf, is_not_final, self._is_over.wait, longest)

        def ping() -> Pulse:
            # With every try it is another thing: what is not named goes back.
            held = self._bench.held()
            return once.ping(held.jobs, as_of=held.as_of) if held else once.ping()

        return patience(ping)

    def _until_over(self, registered: Registered) -> Registered:
        patience = Patience(math.inf, is_not_final, self._is_over.wait)
        return registered.patient(patience)

    def _heed(self, registered: Registered, pulse: Pulse) -> None:
        self._bench.hear(pulse.now)
        if not pulse.alive:
            logger.warning("%s was taken for dead.", registered.name)
            self._bench.lose(registered)
        self._bench.cancel(pulse.cancelled)
        if pulse.quiet:
            self._bench.give_back()
        if pulse.stop:
            self._alarm.put(None)

    def _pause(self) -> float:
        registered = self._bench.registered
        recommended = registered.ping_every if registered else PACE
        return self._ping_every or recommended

    # ── The end ────────────────────────────────────────────────────────────────

    def _finish(self) -> None:
        """What runs may end, and is reported."""
        self._is_leaving.set()
        self._bench.leave()
        until = time.monotonic() + self._grace
        while self._error is None and self._stops < AT_ONCE:
            left = until - time.monotonic()
            if left <= 0 or self._bench.is_empty(within=min(left, LOOK)):
                break

    def _close(self) -> None:
        self._is_leaving.set()
        run_on = self._bench.abandon(HEEDS_WITHIN)
        self._is_over.set()
        registered = self._bench.registered
        self._bench.close()
        if run_on:
            # To sign off would have them begun elsewhere, beside those here.
            logger.warning("Jobs that run on until this program ends: %d.", run_on)
        elif registered is not None:
            # Otherwise it is missed after a while, which does as well.
            with suppress(ApiError):
                registered.patient(Patience(FAREWELL)).dismiss()

    @contextmanager
    def _heeding_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self._heed_signal) for each in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heed_signal(self, number: int, frame: object) -> None:
        self.stop()


def _tell(job: Job, ended: Outcome) -> None:
    """Write into the log how an attempt has ended that did not succeed."""
    error = ended.get("error")
    # Quoted, so that no message looks like a line of somebody else's.
    why = f": {error['type']}: {error['message']!r}" if error else ""
    logger.warning(
        "Job %s (%s, attempt %d) %s%s.",
        *(job.id, job.task, job.attempt),
        *(ended["outcome"].replace("_", " "), why),
    )


def _is_final(error: Exception) -> bool:
    return not isinstance(error, ApiError) or not is_not_final(error)
