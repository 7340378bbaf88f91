"""The tuner: what an operator wants of a worker while it runs."""

import json
import logging
from collections.abc import Callable

from robust_queue.configuration import WorkerConfiguration, current
from robust_queue.exceptions import ConfigurationError
from robust_queue.lifecycle.tune import Wish, wish_for

from . import clock
from .actor import Surroundings, jittered

logger = logging.getLogger("robust_queue")

# Seconds between two questions, where nobody tells and there are polls all the time.
BETWEEN_QUESTIONS = 5.0


class Tuner:
    """Asks the database now and then, and remembers what it was told.

    What is heeded is written on the page: who takes the place of this worker goes on
    with it.
    """

    def __init__(
        self,
        configured: WorkerConfiguration,
        *,
        database: str,
        around: Surroundings,
        hears: Callable[[], bool],
    ) -> None:
        self._configured = configured
        self._database = database
        self._around = around
        self._hears = hears
        self._next_question = clock.now() + jittered(BETWEEN_QUESTIONS)
        self._heeded = self._latest = Wish()
        # What the one before it was told, if there was one.
        self._inherited: Wish | None = Wish.of(json.loads(around.page.tuning or "{}"))

    def wanted(self, *, is_told: bool) -> WorkerConfiguration | None:
        """What to go on with, if there is a wish that was not heeded yet."""
        wish = self._inherited or self._asked_for(is_told=is_told)
        if wish is None or wish == self._heeded:
            self._inherited = None
            return None
        return self._judged(wish)

    def heed(self, configuration: WorkerConfiguration) -> None:
        """It goes on so from now on: tell whoever wants to know."""
        self._around.page.show_tuning(self._latest.text)
        self._around.show(
            {
                "queues": list(configuration.queues),
                "threads": configuration.threads,
                "tuned": self._latest.facts,
            }
        )
        # Last: what could not be told is tried again.
        self._be_done_with(self._latest)
        logger.info(
            "%s goes on with %d threads, queues %s.",
            self._around.name,
            configuration.threads,
            ", ".join(configuration.queues),
        )

    def _asked_for(self, *, is_told: bool) -> Wish | None:
        if is_told:
            self._next_question = 0.0
        if clock.now() < self._next_question:
            return None
        wish = wish_for(self._database, self._around.identity)
        # Behind the answer: what is told once is asked for until there is one.
        self._next_question = clock.now() + jittered(self._patience)
        return wish

    def _judged(self, wish: Wish) -> WorkerConfiguration | None:
        self._latest = wish
        try:
            return wish.applied_to(self._configured)
        except ConfigurationError as error:
            # Written by another hand than that of tune().
            logger.warning("%s cannot be tuned so: %s", self._around.name, error)
            self._be_done_with(wish)
            return None

    def _be_done_with(self, wish: Wish) -> None:
        self._heeded, self._inherited = wish, None

    @property
    def _patience(self) -> float:
        if self._hears():
            return current().process_heartbeat_interval.total_seconds()
        return BETWEEN_QUESTIONS
