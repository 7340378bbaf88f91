"""Fatigue: when a worker asks for a successor.

Long-lived processes grow, because libraries leak and memory gets scattered. A fresh one
now and then keeps that within bounds.
"""

import logging
import math
import random

from robust_queue.configuration import WorkerConfiguration

from . import clock
from .memory import rss

logger = logging.getLogger("robust_queue")

# Workers that were started together must not be replaced together.
JITTER = 0.2
BETWEEN_WEIGHINGS = 1.0
# A limit that is nearly reached at birth would have workers replaced without end.
MOST_AT_BIRTH = 0.9


class Fatigue:
    """Counts tasks and watches the memory of this process."""

    def __init__(self, configuration: WorkerConfiguration) -> None:
        self._max_tasks = _a_little_less(configuration.max_tasks)
        self._max_rss = _a_little_less(configuration.max_rss)
        self._tasks = 0
        self._next_weighing = 0.0
        self._exhaustion = ""

    def begin(self) -> None:
        """Compare the limit with what a fresh process has, which nothing can lower."""
        if self._max_rss and rss() > self._max_rss * MOST_AT_BIRTH:
            logger.warning(
                "max_rss is not heeded: a fresh worker has %s in use already.",
                _in_words(rss()),
            )
            self._max_rss = None

    def be_exhausted(self, reason: str) -> None:
        """Something has happened after which this process should not live on."""
        self._exhaustion = self._exhaustion or reason

    def add(self, tasks: int) -> None:
        """So many tasks were run."""
        self._tasks += tasks

    @property
    def tasks_left(self) -> float:
        """How many tasks it has yet to run; no end to them where there is no limit."""
        if not self._max_tasks:
            return math.inf
        return max(self._max_tasks - self._tasks, 0)

    @property
    def reason(self) -> str:
        """Why it is time for a successor; empty if it is not."""
        if self._exhaustion:
            return self._exhaustion
        if not self.tasks_left:
            return f"it has run {self._tasks} tasks"
        if self._max_rss and self._is_time_to_weigh() and rss() > self._max_rss:
            return f"it has grown to {_in_words(rss())}"
        return ""

    def _is_time_to_weigh(self) -> bool:
        if clock.now() < self._next_weighing:
            return False
        self._next_weighing = clock.now() + BETWEEN_WEIGHINGS
        return True


def _in_words(size: int) -> str:
    return f"{size / 1024**2:.0f} MiB"


def _a_little_less(limit: int | None) -> int | None:
    if limit is None:
        return None
    return max(round(limit * random.uniform(1 - JITTER, 1)), 1)  # noqa: S311
