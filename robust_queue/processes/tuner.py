"""The tuner: what an operator wants of a worker while it runs."""

import json
import logging
from collections.abc import Callable
from typing import NamedTuple

from robust_queue.configuration import WorkerConfiguration, current
from robust_queue.exceptions import ConfigurationError
from robust_queue.lifecycle.tune import Orders, Wish, orders_for

from . import clock
from .actor import Surroundings, jittered

logger = logging.getLogger("robust_queue")

# Seconds between two questions, where nobody tells and there are polls all the time.
BETWEEN_QUESTIONS = 5.0


class Standing(NamedTuple):
    """What a worker goes on with: what is wished of it, and of its household."""

    wish: Wish = Wish()
    is_household_quiet: bool = False

    @property
    def is_quiet(self) -> bool:
        return self.wish.is_quiet or self.is_household_quiet


class Tuner:
    """Asks the database now and then, and remembers what it was told.

    What is heeded is written on the page: who takes the place of this worker goes on
    with it. What is asked of the supervisor is passed on, so that it need not ask.
    """

    def __init__(
        self,
        configured: WorkerConfiguration,
        *,
        database: str,
        around: Surroundings,
        hears: Callable[[], bool],
        tire: Callable[[str], None],
    ) -> None:
        self._configured = configured
        self._database = database
        self._around = around
        self._hears = hears
        self._tire = tire
        # At once: who is born into a quiet household takes nothing.
        self._next_question = 0.0
        self._heeded = Standing()
        # What the one before it was told, if there was one.
        inherited = Wish.of(json.loads(around.page.tuning or "{}"))
        self._latest = Standing(inherited)

    @property
    def is_quiet(self) -> bool:
        """Is nothing new to be taken?"""
        return self._latest.is_quiet

    def wanted(self, *, is_told: bool) -> WorkerConfiguration | None:
        """What to go on with, if something is wished that was not heeded yet."""
        orders = self._asked_for(is_told=is_told)
        if orders is not None:
            wish = orders.wish or self._latest.wish
            self._latest = Standing(wish, orders.is_household_quiet)
            self._pass_on(orders)
        if self._latest == self._heeded:
            return None
        return self._judged(self._latest)

    def heed(self, configuration: WorkerConfiguration) -> None:
        """It goes on so from now on: tell whoever wants to know."""
        self._around.page.show_tuning(self._latest.wish.text)
        self._around.show(
            {
                "queues": list(configuration.queues),
                "threads": configuration.threads,
                "quiet": self.is_quiet,
                "tuned": self._latest.wish.facts,
            }
        )
        # Last: what could not be told is tried again.
        self._heeded = self._latest
        logger.info(
            "%s goes on with %d threads, queues %s%s.",
            self._around.name,
            configuration.threads,
            ", ".join(configuration.queues),
            "; it is quiet and takes nothing new" if self.is_quiet else "",
        )

    def _asked_for(self, *, is_told: bool) -> Orders | None:
        if is_told:
            self._next_question = 0.0
        if clock.now() < self._next_question:
            return None
        around = self._around
        orders = orders_for(self._database, around.identity, around.supervisor_id)
        # Behind the answer: what is told once is asked for until there is one.
        self._next_question = clock.now() + jittered(self._patience)
        return orders

    def _pass_on(self, orders: Orders) -> None:
        """Have others do what is not for a worker to do: end somebody."""
        if orders.is_to_stop:
            self._tire("somebody has asked for its end")
        if orders.is_supervisor_to_stop:
            self._around.page.show_call()
            self._around.wake_supervisor()

    def _judged(self, standing: Standing) -> WorkerConfiguration | None:
        try:
            return standing.wish.applied_to(self._configured)
        except ConfigurationError as error:
            # Written by another hand than that of tune().
            logger.warning("%s cannot be tuned so: %s", self._around.name, error)
            self._heeded = standing
            return None

    @property
    def _patience(self) -> float:
        if self._hears():
            return current().process_heartbeat_interval.total_seconds()
        return BETWEEN_QUESTIONS
