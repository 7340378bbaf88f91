"""Errands: work that is sent out, so that the supervisor does not wait for it.

Burying and pruning run code that may take long or hang: the database, the backoff of a
task, whoever listens for its end. None of it may keep a supervisor from its signals.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable

from . import clock
from .patience import Patience

logger = logging.getLogger("robust_queue")

PATIENCE = 5  # seconds per statement
LONGEST = 60.0

Work = Callable[[], object]


class Errand(ABC):
    """Work that is sent out, and sent out again until it has been done."""

    def __init__(self) -> None:
        self._patience = Patience(longest=30.0)
        self._is_out = False
        self._begun = 0.0

    @abstractmethod
    def send(self) -> None:
        """Send it out; an OSError or a RuntimeError puts it off."""

    @abstractmethod
    def succeeded(self) -> bool | None:
        """What it came to; None if it is still out."""

    @abstractmethod
    def end(self) -> None:
        """End it, wherever it is, without waiting for that."""

    @abstractmethod
    def give_up(self) -> None:
        """End it, and forget it."""

    def further(self) -> bool:
        """Take the next step; tell whether it has been done."""
        if not self._is_out:
            self._send()
            return False
        success = self.succeeded()
        if success is None:
            self._end_if_overdue()
            return False
        self._is_out = False
        if not success:
            self._patience.fail()
        return success

    def _send(self) -> None:
        if not self._patience.is_over:
            return
        self._begun = clock.now()
        try:
            self.send()
            self._is_out = True
        except (OSError, RuntimeError) as error:
            pause = self._patience.fail()
            logger.warning("Cannot be sent out, again in %.1f s: %s", pause, error)

    def _end_if_overdue(self) -> None:
        if clock.now() > self._begun + LONGEST:
            logger.error("Somebody who was told of a crash does not come to an end.")
            self.end()
