"""Cancellations: who asks for the end of a job that this worker holds."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from uuid import UUID

from django.db import Error

from robust_queue.lifecycle.cancel import asked_for, withdraw

from . import clock
from .held import Ended, Held

# Seconds between two questions, where nobody tells.
BETWEEN_QUESTIONS = 1.0


class Cancellations:
    """Asks the database now and then, for as long as something is held."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._next_question = 0.0
        # Those that were told of it, and have not ended yet.
        self._heeded: set[Held] = set()

    @property
    def patience(self) -> float:
        """Seconds until the next question."""
        return max(self._next_question - clock.now(), 0.0)

    def asked_for(self, held: Collection[Held], *, is_told: bool) -> list[Held]:
        """Those of the claims that somebody has cancelled, unless they were heeded."""
        if not held or not (is_told or self.patience <= 0):
            return []
        self._next_question = clock.now() + BETWEEN_QUESTIONS
        wanted: set[UUID] = asked_for(self._database)
        self._heeded.intersection_update(held)
        return [
            each
            for each in held
            if each.claim.job_id in wanted and each not in self._heeded
        ]

    def withdraw(self, done: Iterable[Ended]) -> None:
        """These are recorded. What has been asked for is done, if they are over.

        What cannot be withdrawn now is swept away later.
        """
        if not self._heeded:
            return
        over = [
            each.held.claim.job_id
            for each in done
            if each.held in self._heeded and each.performed and each.performed.is_over
        ]
        with suppress(Error):
            withdraw(self._database, over)

    def heed(self, held: Held) -> None:
        """It has been told of it: that is done once."""
        self._heeded.add(held)
