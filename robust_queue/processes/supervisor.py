"""The supervisor: bears, reaps, buries, replaces, prunes.

It has one thread, so that forking stays safe, and runs no code of tasks or of those who
listen to them: that is left to errands.
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum, auto
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

from . import clock
from .books import Books
from .children import Child
from .exits import ExitCode
from .families import Family
from .notes import Notes
from .posts import Post
from .wakeup import Wakeup

logger = logging.getLogger("robust_queue")

LONGEST_NAP = 1.0
NAP_WHILE_STOPPING = 0.05
SECONDS_TO_QUIT = 2.0
SECONDS_TO_RECORD = 5.0
# A loop that was away for longer has slept, and so may have everybody else.
SLEPT = 5.0


class Mode(Enum):
    """What the supervisor is about."""

    RUNNING = auto()
    STOPPING = auto()
    QUITTING = auto()


class Supervisor:
    """Keeps every post filled until it is told to stop."""

    def __init__(
        self,
        database: str,
        posts: Sequence[Post],
        *,
        family: Family,
        is_done: Callable[[], bool] = lambda: False,
    ) -> None:
        self._identity = uuid4()
        self._family = family
        self._books = Books(database, self._identity, family=family)
        self._vacant = list(posts)
        self._children: list[Child] = []
        self._is_done = is_done
        self._mode = Mode.RUNNING
        self._stop_by = 0.0
        self._left_behind = False
        self._wakeup = Wakeup()
        self._notes = Notes(self._wakeup)
        self._awake_since = self._last_turn = clock.now()

    def heed_signals(self) -> None:
        """Note signals from now on; to be called before anything takes long."""
        self._notes.take_of(SIGTERM, SIGINT, SIGQUIT, SIGCHLD)
        if getsignal(SIGHUP) != SIG_IGN:  # as nohup has it
            self._notes.take_of(SIGHUP)

    def ask_to_stop(self) -> None:
        """Stop as if TERM had been received. Safe from any thread."""
        self._notes.add(SIGTERM)

    def run(self) -> int:
        """Supervise until told to stop; return what the end was like."""
        self._books.prepare()
        self._family.prepare()
        while not self._is_over():
            self._turn()
            self._wakeup.wait(self._nap())
        self._books.close()
        return self._exit_code()

    def _turn(self) -> None:
        self._look_at_the_clock()
        self._heed_notes()
        self._reap()
        is_stopping = self._mode is not Mode.RUNNING
        if is_stopping:
            # First: a database that does not answer must not give anybody more time.
            self._press()
        self._watch()
        self._books.keep(living=self._children, is_stopping=is_stopping)
        if self._books.are_open and not is_stopping:
            self._fill_posts()
            self._relieve_the_tired()
            self._stop_if_done()

    def _look_at_the_clock(self) -> None:
        if clock.now() - self._last_turn > SLEPT:
            self._awake_since = clock.now()
            self._books.lose_contact()
        self._last_turn = clock.now()

    def _nap(self) -> float:
        if self._mode is not Mode.RUNNING:
            return NAP_WHILE_STOPPING
        are_open = self._books.are_open
        successors = [each.patience.left for each in self._vacant if are_open]
        return min([LONGEST_NAP, self._books.next_entry, *successors])

    # ── Signals ────────────────────────────────────────────────────────────────

    def _heed_notes(self) -> None:
        for number in self._notes.read():
            if number is not SIGCHLD:
                self._heed(number)

    def _heed(self, number: Signals) -> None:
        is_second = number is SIGINT and self._mode is not Mode.RUNNING
        if number is SIGQUIT or is_second:
            self._quit()
        elif self._mode is Mode.RUNNING:
            self._stop(f"received {number.name}")

    def _stop_if_done(self) -> None:
        are_up = all(each.page.is_up for each in self._children)
        if are_up and not self._vacant and self._books.ask(self._is_done):
            self._stop("nothing is left to do")

    def _stop(self, reason: str) -> None:
        timeout = current().shutdown_timeout
        logger.info("Stopping (%s): tasks have %s to finish.", reason, timeout)
        self._mode = Mode.STOPPING
        self._stop_by = clock.now() + timeout.total_seconds()
        for child in self._children:
            # One that was being replaced has no more time than the others now.
            child.page.show_relieved(is_relieved=False)
            child.ask_to_stop()

    def _quit(self) -> None:
        logger.info("Leaving at once.")
        self._mode = Mode.QUITTING
        self._stop_by = clock.now()
        for child in self._children:
            child.dismiss()

    # ── Children ───────────────────────────────────────────────────────────────

    def _fill_posts(self) -> None:
        for post in [each for each in self._vacant if each.patience.is_over]:
            if self._beget(post):
                self._vacant.remove(post)

    def _beget(self, post: Post) -> Child | None:
        try:
            child = self._family.beget(
                post,
                supervisor_id=self._identity,
                wake_supervisor=self._wakeup.set,
            )
        except OSError as error:
            pause = post.patience.fail()
            logger.error("Cannot fork, again in %.1f s: %s", pause, error)  # noqa: TRY400
            return None
        self._children.append(child)
        return child

    def _relieve_the_tired(self) -> None:
        """Replace those that ask for it: first comes the successor, then the end."""
        for child in [each for each in self._children if each.page.is_tired]:
            if child.successor is None and child.post.patience.is_over:
                child.successor = self._beget(child.post)
            elif child.is_replaced and not child.page.is_relieved:
                child.relieve()

    def _reap(self) -> None:
        """Collect those that have ended. Each by its number: a task's are not ours."""
        for child in [each for each in self._children if each.has_ended()]:
            self._part_with(child)

    def _part_with(self, dead: Child) -> None:
        self._children.remove(dead)
        self._books.bury_later(dead)
        if dead.successor in self._children:
            logger.info("%s ended: replaced by %s.", dead.name, dead.successor.name)
            return
        tired = next((each for each in self._children if each.successor is dead), None)
        if tired:
            # Its post is still filled, by the one that it was to replace.
            tired.successor = None
        self._vacate(dead, is_filled=tired is not None)

    def _vacate(self, dead: Child, *, is_filled: bool) -> None:
        patience = dead.post.patience
        if dead.has_settled_in:
            patience.succeed()
        # The first successor comes nearly at once, later ones ever more slowly.
        pause = patience.fail()
        if not is_filled:
            self._vacant.append(dead.post)
        if self._mode is Mode.RUNNING:
            level = logging.WARNING if dead.exit_code else logging.INFO
            how = dead.end_in_words
            logger.log(
                level, "%s ended: %s; replaced in %.1f s.", dead.name, how, pause
            )
        elif dead.was_dismissed and dead.page.has_running():
            self._left_behind = True

    def _watch(self) -> None:
        """End children that are stuck, since they will not do so themselves."""
        if clock.now() - self._awake_since < SLEPT:
            return  # they may have slept too, and beat any moment
        for child in self._children:
            if child.is_stuck_in_boot():
                self._kill(child, "it did not finish booting")
            elif child.is_stuck():
                self._kill(child, "its main thread did not come around")
            elif child.has_lost_trust() and self._must_end(child):
                self._kill(child, "its heartbeats did not reach the database")

    def _must_end(self, child: Child) -> bool:
        """While the database is away nobody is to blame for silence, and nobody prunes.

        But what might be run again elsewhere must not go on here.
        """
        return child.page.runs_what_runs_again() or self._books.are_in_contact

    def _kill(self, child: Child, reason: str) -> None:
        if child.killed_because is not None:
            return
        child.killed_because = reason
        if child.kill():
            logger.error("%s is killed: %s.", child.name, reason)
        else:
            logger.error("%s is stuck: %s. Restart this process.", child.name, reason)

    def _press(self) -> None:
        """Remind those that are still here when their time is up."""
        if self._mode is Mode.STOPPING and clock.now() > self._stop_by:
            for child in self._children:
                child.dismiss()
        for child in list(self._children):
            if child.dismissed and clock.now() > child.dismissed + SECONDS_TO_QUIT:
                self._end(child)

    def _end(self, child: Child) -> None:
        if not child.kill():
            # A thread that does not come around ends with this process.
            child.exit_code = ExitCode.LEFT_BEHIND
            self._part_with(child)

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
        return ExitCode.LEFT_BEHIND if self._left_behind else ExitCode.DONE
