"""A child: from its birth by fork to its end by ``os._exit``.

It never returns into the code of its parent, which would clean up what is not its own.
"""

import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from signal import SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM
from types import FrameType
from typing import NoReturn
from uuid import UUID

from django.db import Error

from robust_queue.configuration import current
from robust_queue.models import Process
from robust_queue.models.processes import name_of

from . import clock
from .actor import LONGEST_PAUSE
from .connections import dedicate, drop
from .exits import ExitCode, leave
from .heart import Heart
from .notes import Notes
from .page import Page
from .patience import Patience
from .posts import Post, Surroundings
from .wakeup import Wakeup

logger = logging.getLogger("robust_queue")

STATEMENT_PATIENCE = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """What a child inherits."""

    post: Post
    identity: UUID
    supervisor_id: UUID
    page: Page
    # Can be read once the parent is gone, whatever became of it.
    lifeline: int
    supervisor_pid: int


def live(birth: Birth) -> NoReturn:
    """Be a child, to the end."""
    code: int = ExitCode.BROKEN
    try:
        code = ChildProcess(birth).live()
    except BaseException:
        logger.exception("The %s broke down.", birth.post.kind.lower())
    finally:
        leave(code)


class ChildProcess:
    """The process around an actor: signals, heart, and turns that survive errors."""

    def __init__(self, birth: Birth) -> None:
        self._birth = birth
        self._page = birth.page
        self._database = birth.post.database
        self._wakeup = Wakeup()
        self._notes = Notes(self._wakeup)
        self._trouble = Patience()
        self._is_orphan = False
        self._stop_by: float | None = None
        self._heart = Heart(
            self._database,
            birth.identity,
            birth.page,
            on_pruned=self._leave_pruned,
            on_distrust=self._leave_distrusted,
        )
        self._actor = birth.post.make(
            Surroundings(
                identity=birth.identity,
                name=self.name,
                page=birth.page,
                trusts=lambda: self._heart.trusts,
                wake=self._wakeup.set,
            )
        )

    @property
    def name(self) -> str:
        kind, identity = self._birth.post.kind, self._birth.identity
        return name_of(kind, identity, pid=os.getpid())

    def live(self) -> int:
        """Serve until asked to stop; return what the end was like."""
        self._heed_signals()
        self._page.show_life()
        dedicate(self._database, patience=STATEMENT_PATIENCE)
        if not self._boot():
            return ExitCode.DONE
        while not self._is_asked_to_stop():
            self._nap(self._patiently(self._actor.turn))
        return self._stop()

    # ── Birth ──────────────────────────────────────────────────────────────────

    def _heed_signals(self) -> None:
        self._notes.take_of(SIGTERM, SIGINT)
        # At once, wherever the main thread is. The claims are the supervisor's to
        # return, once this process is gone.
        signal.signal(SIGQUIT, self._quit)
        signal.signal(SIGCHLD, signal.SIG_DFL)
        # The terminal is gone: the supervisor decides what that means. Not ignored, or
        # programs that tasks start would inherit that.
        signal.signal(SIGHUP, _pass_over)
        # Tasks may fork, and would wonder why nobody hears them.
        os.register_at_fork(after_in_child=_heed_signals_as_usual)
        # Withheld by the parent until now.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _boot(self) -> bool:
        """Register, however long the database takes; False if asked to stop before."""
        patience = Patience()
        while not self._is_asked_to_stop():
            self._page.show_life()
            try:
                self._register()
            except Error as error:
                drop(self._database)
                if patience.is_worth_telling:
                    logger.warning("%s waits for the database: %s", self.name, error)
                self._nap(patience.fail())
            else:
                return True
        return False

    def _register(self) -> None:
        begun = clock.now()
        processes = Process.objects.using(self._database)
        # A first try may have succeeded without telling so.
        processes.strike_off(self._birth.identity)
        processes.register(
            self._birth.post.kind,
            identity=self._birth.identity,
            supervisor_id=self._birth.supervisor_id,
            metadata=self._birth.post.metadata,
        )
        self._page.show_beat(begun)
        self._actor.start()
        # Not earlier: who beats is not taken for stuck.
        self._heart.start()
        self._page.show_up()
        logger.info("%s started.", self.name)

    # ── Turns ──────────────────────────────────────────────────────────────────

    def _patiently(self, turn: Callable[[], float]) -> float:
        """Take a turn. Whatever it raises is told, and followed by a longer pause."""
        self._page.show_turn()
        try:
            pause = turn()
        except Exception as error:
            return self._after(error)
        self._trouble.succeed()
        return pause

    def _after(self, error: Exception) -> float:
        if self._trouble.is_worth_telling:
            logger.warning(
                "%s goes on after an error: %s",
                self.name,
                error,
                exc_info=not isinstance(error, Error),
            )
        # Half-broken, or pointing at a server that has become read-only.
        drop(self._database)
        self._actor.recover()
        return self._trouble.fail()

    def _nap(self, seconds: float) -> None:
        lifeline = () if self._is_orphan else (self._birth.lifeline,)
        self._wakeup.wait(min(seconds, LONGEST_PAUSE), *lifeline)

    # ── The end ────────────────────────────────────────────────────────────────

    def _is_asked_to_stop(self) -> bool:
        if not self._is_orphan and os.getppid() != self._birth.supervisor_pid:
            logger.warning("%s has lost its supervisor and stops.", self.name)
            self._is_orphan = True
        if any(self._notes.read()) or self._is_orphan:
            self._begin_to_stop()
        return self._stop_by is not None

    def _begin_to_stop(self) -> None:
        if self._stop_by is None:
            self._stop_by = clock.now() + current().shutdown_timeout.total_seconds()
            self._actor.stop()

    def _stop(self) -> int:
        """Let running tasks finish, record what they came to, and sign off."""
        while True:
            pause = self._patiently(self._actor.turn)
            if not self._actor.is_busy:
                break
            if self._is_time_up():
                self._page.show_leaving()
                return ExitCode.LEFT_BEHIND
            self._nap(min(pause, self._time_left()))
        self._actor.finish()
        self._heart.stop()
        self._sign_off()
        return ExitCode.DONE

    def _is_time_up(self) -> bool:
        # Nobody would return the claims of an orphan: its tasks may finish.
        return (
            self._is_asked_to_stop() and not self._is_orphan and self._time_left() <= 0
        )

    def _time_left(self) -> float:
        if self._is_orphan or self._stop_by is None:
            return LONGEST_PAUSE
        return self._stop_by - clock.now()

    def _sign_off(self) -> None:
        try:
            Process.objects.using(self._database).strike_off(self._birth.identity)
        except Error as error:
            # The supervisor does it, or whoever prunes.
            logger.warning("%s could not sign off: %s", self.name, error)
        logger.info("%s stopped.", self.name)

    # ── Ends that do not wait: of the heart, in its own thread, or by a signal ──

    def _leave_pruned(self) -> None:
        logger.error("%s was taken for dead: its jobs are no longer its.", self.name)
        os._exit(ExitCode.PRUNED)

    def _leave_distrusted(self) -> None:
        """Trust has run out: somebody else may soon run what runs here."""
        if self._page.runs_what_runs_again():
            logger.error("%s cannot reach the database and ends.", self.name)
            os._exit(ExitCode.FENCED)

    def _quit(self, number: int, frame: FrameType | None) -> None:
        self._page.show_leaving()
        os._exit(ExitCode.QUIT)


def _pass_over(number: int, frame: FrameType | None) -> None:
    """Do nothing."""


def _heed_signals_as_usual() -> None:
    for number in (SIGTERM, SIGQUIT, SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(SIGINT, signal.default_int_handler)
