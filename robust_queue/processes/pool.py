"""A pool of threads that nothing can end."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from django.db import connections

from robust_queue.reports import report
from robust_queue.transactions import keep_account

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
        self._threads = [
            # Daemons: a process that has to leave does not wait for them.
            threading.Thread(target=self._work, name=f"{name} {n}", daemon=True)
            for n in range(1, size + 1)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def submit(self, errand: Errand) -> None:
        self._errands.put(errand)

    def finish(self, timeout: float) -> None:
        """Let every errand that was submitted come to its end, for so long at most."""
        self._errands.put(None)
        ends = time.monotonic() + timeout
        for thread in filter(threading.Thread.is_alive, self._threads):
            thread.join(max(ends - time.monotonic(), 0))

    def _work(self) -> None:
        keep_account()
        try:
            self._prepare()
            self._run_errands()
        finally:
            connections.close_all()

    def _run_errands(self) -> None:
        while (errand := self._errands.get()) is not None:
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
