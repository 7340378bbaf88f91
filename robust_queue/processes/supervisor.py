"""The supervisor: bears, reaps, buries, replaces, prunes.

It has one thread, so that forking stays safe, and runs no code of tasks or of those who
listen to them: that is left to errands.
"""

import logging
import math
import os
from collections.abc import Callable, Sequence
from signal import (
    SIG_IGN,
    SIGCHLD,
    SIGHUP,
    SIGINT,
    SIGQUIT,
    SIGTERM,
    Signals,
    getsignal,
)
from uuid import uuid4

from robust_queue.configuration import current
from robust_queue.models.processes import name_of
from robust_queue.signals import (
    ProcessFacts,
    process_exited,
    process_started,
    process_stopping,
    tell_of_process,
)

from . import clock
from .books import Books
from .children import OVERDUE, Child
from .exits import ExitCode
from .families import Family
from .household import Household
from .modes import Mode
from .notes import Notes, spare_forks
from .posts import Post
from .reload import Reload
from .reserve import Reserve
from .wakeup import Wakeup

logger = logging.getLogger("robust_queue")

LONGEST_NAP = 1.0
NAP_WHILE_STOPPING = 0.05
SECONDS_TO_LEAVE = 1.0
SECONDS_TO_RECORD = 5.0
# A loop that was away for longer has slept, and so may have everybody else.
SLEPT = 5.0


class Supervisor:
    """Keeps every post filled until it is told to stop."""

    kind = "Supervisor"

    def __init__(
        self,
        database: str,
        posts: Sequence[Post],
        *,
        family: Family,
        is_done: Callable[[], bool] = lambda: False,
        reload: Reload | None = None,
        reserve: Reserve | None = None,
    ) -> None:
        self._identity = uuid4()
        self._database = database
        self._family = family
        self._wakeup = Wakeup()
        self._notes = Notes(self._wakeup)
        self._books = Books(database, self._identity, family=family)
        self._household = Household(
            posts,
            family=family,
            books=self._books,
            supervisor_id=self._identity,
            wake_supervisor=self._wakeup.set,
        )
        self._is_done = is_done
        self._reload = reload
        self._reserve = reserve
        self._mode = Mode.RUNNING
        self._stop_by = 0.0
        self._is_to_finish = False
        # Is this program nobody else's, so that it ends with the supervisor?
        self._is_alone = False
        self._awake_since = self._last_turn = clock.now()

    def heed_signals(self) -> None:
        """Note signals from now on; to be called before anything takes long."""
        self._is_alone = True
        self._notes.take_of(SIGTERM, SIGINT, SIGQUIT, SIGCHLD)
        spare_forks()
        if getsignal(SIGHUP) != SIG_IGN:  # as nohup has it
            self._notes.take_of(SIGHUP)

    def ask_to_finish(self) -> None:
        """Stop when what runs is over, however long that takes. From any thread."""
        self._is_to_finish = True
        self._wakeup.set()

    def ask_to_quit(self) -> None:
        """Leave at once, as if QUIT had been received. From any thread."""
        self._notes.add(SIGQUIT)

    def run(self) -> int:
        """Supervise until told to stop; return what the end was like."""
        self._books.prepare()
        tell_of_process(process_started, Supervisor, self._facts)
        self._family.prepare()
        while not self._is_over():
            self._turn()
            self._wakeup.wait(self._nap())
        self._books.close()
        self._look_back()
        code = self._exit_code()
        if code == ExitCode.DONE:
            tell_of_process(process_exited, Supervisor, self._facts)
        return code

    @property
    def is_to_start_anew(self) -> bool:
        """Has it stopped only to make way for new code?"""
        return self._mode is Mode.RELOADING

    def _turn(self) -> None:
        self._look_at_the_clock()
        self._heed_notes()
        self._household.reap(is_running=self._mode is Mode.RUNNING)
        self._reload_if_due()
        is_stopping = self._mode is not Mode.RUNNING
        if is_stopping:
            # First: a database that does not answer must not give anybody more time.
            self._press()
        self._watch()
        self._books.keep(living=self._children, is_stopping=is_stopping)
        self._heed_orders()
        if self._books.are_open and self._mode is Mode.RUNNING:
            self._call_up_reserve()
            self._household.fill_posts()
            self._household.relieve_the_tired()
            self._stop_if_done()

    @property
    def _children(self) -> Sequence[Child]:
        return self._household.children

    @property
    def _facts(self) -> ProcessFacts:
        return ProcessFacts(
            kind=self.kind,
            name=name_of(self.kind, self._identity, pid=os.getpid()),
            pid=os.getpid(),
            database=self._database,
        )

    def _look_at_the_clock(self) -> None:
        if clock.now() - self._last_turn > SLEPT:
            self._awake_since = clock.now()
            self._books.lose_contact()
        self._last_turn = clock.now()

    def _nap(self) -> float:
        if self._mode is not Mode.RUNNING:
            return NAP_WHILE_STOPPING
        births = self._household.next_births if self._books.are_open else []
        return min([LONGEST_NAP, self._books.next_entry, *births])

    # ── Signals ────────────────────────────────────────────────────────────────

    def _heed_notes(self) -> None:
        for number in self._notes.read():
            if number is not SIGCHLD:
                self._heed(number)
        if self._is_to_finish and not self._mode.is_final:
            self._finish()

    def _heed(self, number: Signals) -> None:
        is_second = number is SIGINT and self._mode.is_final
        if number is SIGQUIT or is_second:
            self._quit()
        elif not self._mode.is_final:
            self._stop(f"received {number.name}")

    def _heed_orders(self) -> None:
        is_asked = self._books.is_to_stop and not self._mode.is_final
        if is_asked and self._is_alone:
            self._stop("somebody has asked for it")
        elif is_asked:
            # Threads go on in a program that does, and so must the jobs they have.
            self._finish()

    def _stop_if_done(self) -> None:
        if self._household.is_complete and self._books.ask(self._is_done):
            self._stop("nothing is left to do")

    def _stop(self, reason: str) -> None:
        timeout = current().shutdown_timeout
        logger.info("Stopping (%s): tasks have %s to finish.", reason, timeout)
        self._mode = Mode.STOPPING
        # They leave by themselves when the time is up, and have a moment for that.
        self._stop_by = clock.now() + timeout.total_seconds() + SECONDS_TO_LEAVE
        self._household.ask_to_stop()
        tell_of_process(process_stopping, Supervisor, self._facts)

    def _finish(self) -> None:
        self._mode = Mode.STOPPING
        self._stop_by = math.inf
        self._household.relieve()
        tell_of_process(process_stopping, Supervisor, self._facts)

    def _quit(self) -> None:
        logger.info("Leaving at once.")
        self._mode = Mode.QUITTING
        self._stop_by = clock.now()
        self._household.dismiss()

    # ── Reload ─────────────────────────────────────────────────────────────────

    def _reload_if_due(self) -> None:
        if self._reload is None or self._mode.is_final:
            return
        changed = self._reload.look()
        if changed is None:
            # What changed while tasks finished may not load: the old code goes on.
            self._mode = Mode.RUNNING
        elif self._mode is Mode.RUNNING:
            logger.info(
                "%s has changed: reloading, running tasks finish first.", changed
            )
            self._mode = Mode.RELOADING
            self._stop_by = math.inf
            self._household.relieve()

    def _look_back(self) -> None:
        if self._reload:
            self._reload.give_up()
        if self._mode is Mode.RELOADING:
            # Who asked for a stop meanwhile gets it, and no new start.
            self._notes.take_no_more()
            self._heed_notes()

    # ── Children ───────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        """End children that are stuck, since they will not do so themselves."""
        if clock.now() - self._awake_since < SLEPT:
            return  # they may have slept too, and beat any moment
        for child in self._children:
            if child.is_gone:
                continue  # what is left of it is on its way out
            if child.is_stuck_in_boot():
                self._household.kill(child, "it did not finish booting")
            elif child.is_overdue():
                self._household.kill(child, OVERDUE)
            elif child.is_stuck():
                self._household.kill(child, "its main thread did not come around")
            elif child.has_lost_trust() and self._must_end(child):
                self._household.kill(child, "its heartbeats did not reach the database")

    def _must_end(self, child: Child) -> bool:
        """While the database is away nobody is to blame for silence, and nobody prunes.

        But what might be run again elsewhere must not go on here.
        """
        return child.page.runs_what_runs_again() or self._books.are_in_contact

    def _call_up_reserve(self) -> None:
        called = self._reserve.call_up(self._books.ask) if self._reserve else None
        if called is not None:
            logger.info("A %s is needed from now on.", called.kind.lower())
            self._household.provide(called)

    def _press(self) -> None:
        """Remind those that are still here when their time is up."""
        if self._mode is Mode.STOPPING and clock.now() > self._stop_by:
            self._household.dismiss()
        self._household.press()

    # ── The end ────────────────────────────────────────────────────────────────

    def _is_over(self) -> bool:
        if self._mode is Mode.RUNNING or self._children:
            return False
        patience_ends = self._stop_by + SECONDS_TO_RECORD
        return not self._books.unburied or clock.now() > patience_ends

    def _exit_code(self) -> int:
        if any(each.may_hold_claims for each in self._books.unburied):
            return ExitCode.UNRECORDED
        if self._mode is Mode.QUITTING:
            return ExitCode.QUIT
        if self._household.has_left_behind:
            return ExitCode.LEFT_BEHIND
        return ExitCode.DONE
