"""Strangers: claims of a process in the table of which it does not know.

The database may have granted a claim whose reply never came.
"""

import logging
from collections.abc import Iterable
from uuid import UUID

from robust_queue.configuration import current
from robust_queue.lifecycle import recover
from robust_queue.lifecycle.release import release

from . import clock
from .actor import jittered
from .held import Held

logger = logging.getLogger("robust_queue")


class Strangers:
    """Looks for them with each heartbeat, and whenever a reply may have been lost."""

    def __init__(self, database: str, identity: UUID) -> None:
        self._database = database
        self._identity = identity
        self._next_look = 0.0

    def expect(self) -> None:
        """There may be some: look for them at the next opportunity."""
        self._next_look = 0.0

    def give_back_if_due(self, held: Iterable[Held]) -> None:
        """Give back what is not among these, if it is time to look."""
        if clock.now() >= self._next_look:
            self._give_back({(each.claim.job_id, each.claim.token) for each in held})
            interval = current().process_heartbeat_interval.total_seconds()
            self._next_look = clock.now() + jittered(interval)

    def _give_back(self, known: set[tuple[UUID, UUID]]) -> None:
        claims = recover.claims_of(self._database, self._identity)
        strangers = [each for each in claims if (each.job_id, each.token) not in known]
        released = release(self._database, strangers)
        if released:
            logger.warning("%d claims whose reply was lost went back.", len(released))
