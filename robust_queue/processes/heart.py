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

from robust_queue.configuration import current
from robust_queue.models import Process

from . import clock
from .connections import dedicate, drop
from .memory import rss
from .page import Page
from .patience import Patience

logger = logging.getLogger("robust_queue")

STATEMENT_PATIENCE = 5
LEAST_LOOK = 0.2


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
        self._is_pruned = False
        self._known_trust = -1.0, 0.0
        self._watch = threading.Thread(
            target=self._watch_trust, name="robust_queue trust", daemon=True
        )
        self._patience = Patience(longest=self._interval)

    @property
    def trusts(self) -> bool:
        """May this process still think that its claims are its own?

        Counted from the start of the last heartbeat that succeeded: the server may
        have written it down as early as that.
        """
        return not self._is_pruned and clock.now() < self._trusted_until

    @property
    def _trusted_until(self) -> float:
        # Asked for every job. So it is computed once for each beat.
        beat = self._page.last_beat
        known_for, until = self._known_trust
        if beat != known_for:
            until = beat + trust_span(current().process_alive_threshold)
            self._known_trust = beat, until
        return until

    def start(self) -> None:
        super().start()
        self._watch.start()

    def run(self) -> None:
        dedicate(self._database, patience=STATEMENT_PATIENCE)
        while not self._stopped.wait(self._pause()):
            self._beat()
            self._page.show_life()
        drop(self._database)

    def stop(self, timeout: float = 2 * STATEMENT_PATIENCE) -> None:
        """Stop beating; the last beat may be under way for a little longer."""
        self._stopped.set()
        if self.is_alive():
            self.join(timeout)

    def _watch_trust(self) -> None:
        """Look when trust ends, however long a beat may hang at that moment."""
        left = 0.0
        while not self._stopped.wait(max(left, LEAST_LOOK)):
            left = self._trusted_until - clock.now()
            if left < 0:
                self._on_distrust()

    def _beat(self) -> None:
        begun = clock.now()
        try:
            processes = Process.objects.using(self._database)
            is_known = processes.beat(self._identity, memory=rss())
        except Exception as error:
            self._skip(error)
            return
        self._patience.succeed()
        if is_known:
            self._page.show_beat(begun)
        elif not self._stopped.is_set():
            self._is_pruned = True
            self._stopped.set()
            self._on_pruned()

    def _skip(self, error: Exception) -> None:
        drop(self._database)
        if self._patience.is_worth_telling:
            logger.warning("No heartbeat, the database cannot be reached: %s", error)
        self._patience.fail()

    def _pause(self) -> float:
        if self._patience.failures:
            return self._patience.left
        # From the last one on: before the first, a hook may have taken long.
        pause = self._interval * random.uniform(0.9, 1.0)  # noqa: S311
        return max(self._page.last_beat + pause - clock.now(), 0.0)

    @property
    def _interval(self) -> float:
        return current().process_heartbeat_interval.total_seconds()
