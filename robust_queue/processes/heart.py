"""The heart: tells the database that a process lives, and the process how far to trust.

A thread of its own with a connection of its own, since neither long tasks nor long
statements may keep it from beating.
"""

import logging
import random
import threading
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.db import Error, connections

from robust_queue.configuration import current
from robust_queue.models import Process

from . import clock
from .connections import dedicate
from .page import Page
from .patience import Patience

logger = logging.getLogger("robust_queue")

STATEMENT_PATIENCE = 5


def trust_span(threshold: timedelta) -> float:
    """Seconds for which a process may trust its claims after a heartbeat.

    Shorter than the threshold of whoever prunes: a process must have stopped before
    its work is given to somebody else.
    """
    seconds = threshold.total_seconds()
    return seconds - min(seconds / 5, 30.0)


class Heart(threading.Thread):
    """Beats until the process ends."""

    def __init__(
        self,
        database: str,
        identity: UUID,
        page: Page,
        *,
        on_pruned: Callable[[], None],
        on_distrust: Callable[[], None],
    ) -> None:
        super().__init__(name="robust_queue heart", daemon=True)
        self._database = database
        self._identity = identity
        self._page = page
        self._on_pruned = on_pruned
        self._on_distrust = on_distrust
        self._stopped = threading.Event()
        self._patience = Patience(longest=self._interval)

    @property
    def trusts(self) -> bool:
        """May this process still think that its claims are its own?

        Counted from the start of the last heartbeat that succeeded: the server may
        have written it down as early as that.
        """
        span = trust_span(current().process_alive_threshold)
        return clock.now() < self._page.last_beat + span

    def run(self) -> None:
        dedicate(self._database, patience=STATEMENT_PATIENCE)
        # A little early, never late, and not in step with all the others.
        while not self._stopped.wait(self._pause()):
            self._beat()
            self._page.show_life()
            if not self.trusts:
                self._on_distrust()
        connections[self._database].close()

    def stop(self) -> None:
        """Stop beating, and wait until the last beat is over."""
        self._stopped.set()
        if self.is_alive():
            self.join()

    def _beat(self) -> None:
        begun = clock.now()
        try:
            is_known = Process.objects.using(self._database).beat(self._identity)
        except Error as error:
            self._skip(error)
            return
        self._patience.succeed()
        if is_known:
            self._page.show_beat(begun)
        elif not self._stopped.is_set():
            self._on_pruned()

    def _skip(self, error: Error) -> None:
        connections[self._database].close()
        if not self._patience.failures:
            logger.warning("No heartbeat, the database cannot be reached: %s", error)
        self._patience.fail()

    def _pause(self) -> float:
        if self._patience.failures:
            return self._patience.left
        return self._interval * random.uniform(0.9, 1.0)  # noqa: S311

    @property
    def _interval(self) -> float:
        return current().process_heartbeat_interval.total_seconds()
