"""A pool of threads that nothing can end."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue

from django.db import connections

from robust_queue.reports import report
from robust_queue.transactions import keep_account

logger = logging.getLogger("robust_queue")

Errand = Callable[[], None]


class Pool:
    """Runs errands in the order in which they come, each in the next free thread."""

    def __init__(
        self,
        size: int,
        name: str = "robust_queue",
        *,
        prepare: Errand = lambda: None,
    ) -> None:
        self._prepare = prepare  # what each thread does first
        self._errands: SimpleQueue[Errand | None] = SimpleQueue()
        self._size = size
        self._names = (f"{name} {n}" for n in count(1))
        self._threads = [self._new_thread() for _ in range(size)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def resize(self, size: int) -> int:
        """Have so many threads from now on; return how many there could be had.

        Those that are too many end, the next ones that come to the end of an errand.
        """
        self._threads = [each for each in self._threads if each.is_alive()]
        for _ in range(size - self._size):
            thread = self._new_thread()
            try:
                thread.start()
            except RuntimeError as error:
                logger.warning("There are %d threads: %s", self._size, error)
                return self._size
            self._threads.append(thread)
            self._size += 1
        for _ in range(self._size - size):
            self._errands.put(_leave)
        self._size = size
        return size

    def submit(self, errand: Errand) -> None:
        self._errands.put(errand)

    def finish(self, timeout: float) -> None:
        """Let every errand that was submitted come to its end, for so long at most."""
        self._errands.put(None)
        ends = time.monotonic() + timeout
        for thread in filter(threading.Thread.is_alive, self._threads):
            thread.join(max(ends - time.monotonic(), 0))

    def _new_thread(self) -> threading.Thread:
        # Daemons: a process that has to leave does not wait for them.
        return threading.Thread(target=self._work, name=next(self._names), daemon=True)

    def _work(self) -> None:
        keep_account()
        try:
            self._prepare()
            self._run_errands()
        finally:
            connections.close_all()

    def _run_errands(self) -> None:
        while (errand := self._errands.get()) is not None:
            if errand is _leave:
                return
            self._run(errand)
        # The end, but not before what errands have submitted meanwhile.
        while (late := self._late_errand()) is not None:
            self._run(late)
        self._errands.put(None)  # for the next thread

    def _late_errand(self) -> Errand | None:
        with suppress(Empty):
            while True:
                errand = self._errands.get_nowait()
                if errand is not None:
                    return errand
        return None

    def _run(self, errand: Errand) -> None:
        try:
            errand()
        except BaseException as error:
            # Even SystemExit: a thread less would be a slot less, silently.
            report(error, "a thread did something for a job")


def _leave() -> None:
    """What is told to a thread that is too many."""
