"""A supervisor in a thread, with all that it supervises in further threads."""

import concurrent.futures.thread  # noqa: F401 (see the end of this file)
import logging
import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from django.db import connections

from robust_queue import logs, registry
from robust_queue.aliases import database_to_serve
from robust_queue.configuration import (
    ConfigurationOptions,
    DispatcherConfiguration,
    WorkerConfiguration,
    current,
)
from robust_queue.exceptions import RobustQueueError
from robust_queue.lifecycle.install import recurrences_of
from robust_queue.processes.assembly import family_of, notices, reserve_of, seats_of
from robust_queue.processes.supervisor import Supervisor
from robust_queue.reports import report
from robust_queue.rules import RunMode

logger = logging.getLogger("robust_queue")

# What the end may take beyond the last task, and what a hurried one may take.
SECONDS_TO_SIGN_OFF = 2.0
SECONDS_TO_LEAVE = 10.0


_running: "weakref.WeakSet[Embedded]" = weakref.WeakSet()


class Embedded:
    """Runs the queue from ``start()`` to ``stop()``, or for a ``with`` block.

    What is not given is as in the settings. Both methods may be called from any thread;
    a program that forks calls ``start()`` in the process that is to work.
    """

    def __init__(
        self,
        *,
        database: str | None = None,
        workers: Sequence[WorkerConfiguration] | None = None,
        dispatchers: Sequence[DispatcherConfiguration] | None = None,
    ) -> None:
        self._database = database
        self._changes = {"workers": workers, "dispatchers": dispatchers}
        self._supervisor: Supervisor | None = None
        self._thread: threading.Thread | None = None
        self._is_stopping = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def is_running(self) -> bool:
        """Is it at work, or is a task that it began?"""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin to work, in threads; a database that is away is waited for there."""
        if self.is_running:
            raise RobustQueueError("It is running already, or has not come to its end.")
        self._supervisor, self._is_stopping = self._assembled(), False
        self._thread = threading.Thread(
            target=self._run,
            args=[self._supervisor],
            name="robust_queue supervisor",
            daemon=True,
        )
        self._thread.start()
        _running.add(self)

    def stop(self) -> bool:
        """Take no new work, and wait for running tasks up to ``shutdown_timeout``.

        False if some still run. They go on, and are recorded when they have finished;
        what is not over when the program ends goes back to the queue.
        """
        if self._supervisor is None or self._thread is None:
            return True
        self._is_stopping = True
        self._supervisor.ask_to_finish()
        timeout = current().shutdown_timeout.total_seconds()
        self._thread.join(timeout + SECONDS_TO_SIGN_OFF)
        if self.is_running:
            logger.warning(
                "Not all is over after %g s: tasks still run, and go on, or the "
                "database is away.",
                timeout,
            )
            return False
        _running.discard(self)
        return True

    def leave(self) -> None:
        """Stop, and give back what still runs: for a program that is about to end."""
        if not self._is_stopping:
            self.stop()
        if self.is_running and self._supervisor and self._thread:
            self._supervisor.ask_to_quit()
            self._thread.join(SECONDS_TO_LEAVE)
        _running.discard(self)

    def _assembled(self) -> Supervisor:
        options = self._options()
        database = database_to_serve(self._database)
        registry.discover()
        for line in notices(options):
            logger.warning("%s", line)
        recurrences = recurrences_of(database)
        seats = seats_of(database, options, recurrences)
        reserve = reserve_of(database, recurrences)
        family = family_of(options)
        return Supervisor(database, seats, family=family, reserve=reserve)

    def _options(self) -> ConfigurationOptions:
        given: dict[str, Any]
        given = {name: it for name, it in self._changes.items() if it is not None}
        return replace(current(), mode=RunMode.ASYNC, **given)

    def _run(self, supervisor: Supervisor) -> None:
        logs.take_over()
        try:
            supervisor.run()
        except BaseException as error:
            report(error, "the embedded queue was running")
        finally:
            connections.close_all()


def _leave_all() -> None:
    """The program ends, and nobody has stopped these."""
    for each in list(_running):
        each.leave()


# Not by ``atexit``: by then the executors of coroutines take no calls any more. The
# latest to register goes first, so it has to be behind that of the executors.
threading._register_atexit(_leave_all)  # type: ignore[attr-defined]
