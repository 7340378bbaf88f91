"""The supervisor's books: everything that it does with the database.

Nothing here waits. While the database is away the work is put off, and the rest of the
supervisor goes on.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from uuid import UUID

from django.db import Error, connections

from robust_queue.configuration import current
from robust_queue.models import Process

from . import clock, undertaker
from .actor import LONGEST_PAUSE, jittered
from .children import Child
from .connections import briefly, close_all, dedicate
from .patience import Patience
from .readiness import pending_migrations

logger = logging.getLogger("robust_queue")

REMINDER = 30.0
# Heartbeats for which contact must have lasted before anybody is taken for dead.
BEATS_TO_BE_SURE = 1.5


class Books:
    """Keeps a supervisor's row alive, settles the claims of the dead, and prunes."""

    def __init__(self, database: str, identity: UUID) -> None:
        self._database = database
        self._identity = identity
        # To be heard again after an outage before anybody else is sure of its silence.
        interval = current().process_heartbeat_interval.total_seconds()
        self._patience = Patience(longest=min(interval, LONGEST_PAUSE))
        self._in_contact_since: float | None = None
        self._next_beat = 0.0
        self._next_pruning = 0.0
        self._next_reminder = 0.0
        self.are_open = False
        self.unburied: list[Child] = []

    def prepare(self) -> None:
        """Connect with little patience: a supervisor must not wait for a server."""
        dedicate(self._database, patience=undertaker.PATIENCE)

    @property
    def next_entry(self) -> float:
        """Seconds until there is something to do here."""
        if not self._patience.is_over:
            return self._patience.left
        return self._next_beat - clock.now() if self.are_open else REMINDER

    @property
    def are_in_contact(self) -> bool:
        """Has the database been reached for longer than heartbeats are apart?"""
        interval = current().process_heartbeat_interval.total_seconds()
        since = self._in_contact_since
        return since is not None and clock.now() - since > BEATS_TO_BE_SURE * interval

    def lose_contact(self) -> None:
        """Forget for how long the database has been reached."""
        self._in_contact_since = None

    def keep(self, *, living: Sequence[Child], is_stopping: bool) -> None:
        """Do what is due."""
        self.ask(lambda: self._keep(living, is_stopping=is_stopping))

    def ask(self, question: Callable[[], bool]) -> bool:
        """Ask something of the database; the answer is no while it is away."""
        if not self._patience.is_over:
            return False
        try:
            answer = question()
        except Exception as error:
            # Whatever it is: without a supervisor nothing would be put right.
            self._note_trouble(error)
            return False
        self._patience.succeed()
        return answer

    def close(self) -> None:
        """Strike off the supervisor itself."""
        with suppress(Error):
            Process.objects.using(self._database).filter(pk=self._identity).delete()
        close_all()

    def _note_trouble(self, error: Exception) -> None:
        # The first time, the second, the fourth, the eighth …
        if self._patience.failures.bit_count() <= 1:
            is_bug = not isinstance(error, Error)
            logger.warning("The database is out of reach: %s", error, exc_info=is_bug)
        self._patience.fail()
        self.lose_contact()
        connections[self._database].close()

    def _keep(self, living: Sequence[Child], *, is_stopping: bool) -> bool:
        if not self.are_open and not self._open():
            return False
        if clock.now() >= self._next_beat:
            self._beat()
        self._bury()
        if clock.now() >= self._next_pruning and not is_stopping:
            self._prune(spare=[self._identity, *(each.identity for each in living)])
        return True

    def _open(self) -> bool:
        """Are the tables there? They may be on their way, in a deploy."""
        pending = pending_migrations(self._database)
        self.are_open = not pending
        if pending and clock.now() >= self._next_reminder:
            logger.warning(
                "Waiting for the migrations of robust_queue on database %r: %s. "
                "Run: manage.py migrate",
                self._database,
                ", ".join(pending),
            )
            self._next_reminder = clock.now() + REMINDER
        return self.are_open

    def _beat(self) -> None:
        with briefly(self._database, seconds=undertaker.PATIENCE):
            processes = Process.objects.using(self._database)
            if not processes.beat(self._identity):
                # Not yet, or not any more: it was silent and somebody struck it off.
                processes.register("Supervisor", identity=self._identity)
        interval = current().process_heartbeat_interval.total_seconds()
        now = clock.now()
        # One that is late had to wait, and so may everybody else have had to.
        if self._in_contact_since is None or now > self._next_beat + interval:
            self._in_contact_since = now
        self._next_beat = now + interval * 0.9

    def _bury(self) -> None:
        """Settle the claims of the dead; one that cannot be settled delays no other."""
        trouble = None
        for dead in list(self.unburied):
            try:
                undertaker.bury(self._database, dead)
            except Error as error:
                trouble = error
            else:
                self.unburied.remove(dead)
        if trouble is not None:
            raise trouble

    def _prune(self, *, spare: Sequence[UUID]) -> None:
        """Strike off the silent, once everybody has had the chance to be heard.

        After an outage all are silent, and whoever comes back first must not take the
        others for dead.
        """
        if not self.are_in_contact:
            return
        threshold = current().process_alive_threshold
        undertaker.prune(self._database, threshold=threshold, spare=spare)
        undertaker.adopt_orphans(self._database)
        self._next_pruning = clock.now() + jittered(threshold.total_seconds() / 5)
