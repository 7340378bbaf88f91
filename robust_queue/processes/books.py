"""The supervisor's books: everything that it does with the database.

Its own heartbeat is all that it waits for, and that for seconds only. Everything else
is sent out as an errand. While the database is away the work is put off, and the rest
of the supervisor goes on.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from uuid import UUID

from django.db import Error

from robust_queue.checks.tables import pending_migrations
from robust_queue.configuration import current
from robust_queue.lifecycle.quiet import is_to_stop
from robust_queue.models import Process

from . import clock, undertaker
from .actor import LONGEST_PAUSE, jittered
from .children import Child
from .connections import briefly, dedicate, drop
from .errands import PATIENCE, Errand, Work
from .families import Family
from .memory import rss
from .patience import Patience

logger = logging.getLogger("robust_queue")

REMINDER = 30.0
# Heartbeats for which contact must have lasted before anybody is taken for dead.
BEATS_TO_BE_SURE = 1.5
LONGEST_ATTEMPT = 10.0


class Books:
    """Keeps a supervisor's row alive, settles the claims of the dead, and prunes."""

    def __init__(self, database: str, identity: UUID, *, family: Family) -> None:
        self._database = database
        self._identity = identity
        self._family = family
        # To be heard again after an outage before anybody else is sure of its silence.
        interval = current().process_heartbeat_interval.total_seconds()
        self._patience = Patience(longest=min(interval, LONGEST_PAUSE))
        self._in_contact_since: float | None = None
        self._next_beat = 0.0
        self._next_pruning = 0.0
        self._next_reminder = 0.0
        self.are_open = False
        # Has somebody asked for the end of this supervisor?
        self.is_to_stop = False
        self._burials: dict[Child, Errand] = {}
        self._pruning: Errand | None = None

    def prepare(self) -> None:
        """Connect with little patience: a supervisor must not wait for a server."""
        dedicate(self._database, patience=PATIENCE)

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
        # A heart may be in the middle of an attempt that takes long.
        enough = BEATS_TO_BE_SURE * interval + min(interval, LONGEST_ATTEMPT)
        return since is not None and clock.now() - since > enough

    def lose_contact(self) -> None:
        """Forget for how long the database has been reached, and who seemed silent."""
        self._in_contact_since = None
        if self._pruning is not None:
            # Tried again as soon as the database is back, it would find all silent.
            self._pruning.give_up()
            self._pruning = None

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
        for errand in (*self._burials.values(), self._pruning):
            if errand is not None:
                errand.give_up()
        with suppress(Error):
            Process.objects.using(self._database).strike_off(self._identity)
        # Not more: connections and pools of others may be in this process.
        drop(self._database)

    def _note_trouble(self, error: Exception) -> None:
        if self._patience.is_worth_telling:
            is_bug = not isinstance(error, Error)
            logger.warning("The database is out of reach: %s", error, exc_info=is_bug)
        self._patience.fail()
        self.lose_contact()
        drop(self._database)

    def _keep(self, living: Sequence[Child], *, is_stopping: bool) -> bool:
        if not self.are_open and not self._open():
            return False
        if clock.now() >= self._next_beat:
            self._beat()
        elif any(each.page.is_calling for each in living):
            self._heed_calls(living)
        self._run_errands(living, is_stopping=is_stopping)
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
        with briefly(self._database, seconds=PATIENCE):
            processes = Process.objects.using(self._database)
            if not processes.beat(self._identity, memory=rss()):
                # Not yet, or not any more: it was silent and somebody struck it off.
                processes.register("Supervisor", identity=self._identity, memory=rss())
            self.is_to_stop = is_to_stop(self._database, self._identity)
        interval = current().process_heartbeat_interval.total_seconds()
        now = clock.now()
        if now > self._next_beat + interval:
            # It is late, had to wait, and so may everybody else have had to.
            self.lose_contact()
        if self._in_contact_since is None:
            self._in_contact_since = now
        self._next_beat = now + interval * 0.9

    def _heed_calls(self, living: Sequence[Child]) -> None:
        """A child has read that something is asked of this supervisor: look oneself."""
        for each in living:
            # Before it looks: who calls again meanwhile makes it look again.
            each.page.show_call(is_calling=False)
        with briefly(self._database, seconds=PATIENCE):
            self.is_to_stop = is_to_stop(self._database, self._identity)

    # ── Errands ────────────────────────────────────────────────────────────────

    def bury_later(self, dead: Child) -> None:
        """Have the claims of a child that has ended settled."""
        self._burials[dead] = self._errand(
            partial(undertaker.bury, self._database, dead)
        )

    @property
    def unburied(self) -> list[Child]:
        return list(self._burials)

    def _run_errands(self, living: Sequence[Child], *, is_stopping: bool) -> None:
        for dead, burial in list(self._burials.items()):
            if burial.further():
                del self._burials[dead]
        if self._pruning is not None and self._pruning.further():
            self._pruning = None
        if (
            clock.now() >= self._next_pruning
            and not is_stopping
            and self.are_in_contact
        ):
            self._prune(spare=[self._identity, *(each.identity for each in living)])

    def _prune(self, *, spare: Sequence[UUID]) -> None:
        """Have the silent struck off, now that all have had the chance to be heard.

        After an outage everybody is silent, and whoever comes back first must not take
        the others for dead.
        """
        threshold = current().process_alive_threshold
        self._next_pruning = clock.now() + jittered(threshold.total_seconds() / 5)
        if self._pruning is None:
            work = undertaker.look_after_the_lost
            self._pruning = self._errand(
                partial(work, self._database, threshold=threshold, spare=spare)
            )

    def _errand(self, work: Work) -> Errand:
        return self._family.errand(work, database=self._database)
