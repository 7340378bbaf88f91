"""A supervisor in a thread, with all that it supervises in further threads."""

import atexit
import logging
import threading
from dataclasses import replace
from types import TracebackType
from typing import Self

from django.db import connections

from robust_queue import logs, registry
from robust_queue.aliases import database_to_serve
from robust_queue.configuration import ConfigurationOptions, current
from robust_queue.exceptions import RobustQueueError
from robust_queue.lifecycle.install import recurrences_of
from robust_queue.processes.assembly import family_of, notices, seats_of
from robust_queue.processes.supervisor import Supervisor
from robust_queue.reports import report
from robust_queue.rules import RunMode

logger = logging.getLogger("robust_queue")

# What a stop may take beyond shutdown_timeout: to leave, and to tell the database.
SECONDS_TO_LEAVE = 10.0


class Embedded:
    """Runs the queue from ``start()`` to ``stop()``, or for a ``with`` block.

    Without a configuration it is that of the settings. Both methods may be called from
    any thread; a program that forks calls ``start()`` in the process that is to work.
    """

    def __init__(
        self,
        *,
        database: str | None = None,
        configuration: ConfigurationOptions | None = None,
    ) -> None:
        self._database = database
        self._configuration = configuration
        self._supervisor: Supervisor | None = None
        self._thread: threading.Thread | None = None

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
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin to work, in threads; a database that is away is waited for there."""
        if self.is_running:
            raise RobustQueueError("It is running already.")
        self._supervisor = self._assembled()
        self._thread = threading.Thread(
            target=self._run,
            args=[self._supervisor],
            name="robust_queue supervisor",
            daemon=True,
        )
        self._thread.start()
        # Before the interpreter ends its threads, should nobody have called stop().
        atexit.register(self.stop)

    def stop(self) -> None:
        """Let running tasks finish for ``shutdown_timeout``, and give the rest back."""
        atexit.unregister(self.stop)
        if self._supervisor is None or self._thread is None:
            return
        self._supervisor.ask_to_stop()
        timeout = current().shutdown_timeout.total_seconds() + SECONDS_TO_LEAVE
        self._thread.join(timeout)
        if self._thread.is_alive():
            logger.error("The queue did not come to an end within %g s.", timeout)

    def _assembled(self) -> Supervisor:
        options = replace(self._configuration or current(), mode=RunMode.ASYNC)
        database = database_to_serve(self._database)
        registry.discover()
        for line in notices(options):
            logger.warning("%s", line)
        seats = seats_of(database, options, recurrences_of(database))
        return Supervisor(database, seats, family=family_of(options))

    def _run(self, supervisor: Supervisor) -> None:
        logs.take_over()
        try:
            supervisor.run()
        except BaseException as error:
            report(error, "the embedded queue was running")
        finally:
            connections.close_all()
