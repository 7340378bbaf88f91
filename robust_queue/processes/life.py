"""The life around an actor: a row, a heart, turns that survive errors, an end in order.

It is lived by a process of its own, or by a thread where everything is in one process.
"""

import json
import logging
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import Error
from django.dispatch import Signal

from robust_queue.configuration import current
from robust_queue.models import Process
from robust_queue.models.processes import name_of
from robust_queue.signals import (
    ProcessFacts,
    process_exited,
    process_started,
    process_stopping,
    tell_of_process,
)

from . import clock
from .actor import LONGEST_PAUSE, Surroundings
from .connections import dedicate, drop
from .exits import ExitCode
from .heart import Heart
from .memory import rss
from .page import Page
from .patience import Patience
from .posts import Post
from .wakeup import Wakeup

logger = logging.getLogger("robust_queue")

STATEMENT_PATIENCE = 30
SECONDS_TO_FINISH = 1.0
LONG_BOOT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """What a life is given at its beginning."""

    post: Post
    identity: UUID
    supervisor_id: UUID
    page: Page
    # Ends a nap of the supervisor. Safe from another process.
    wake_supervisor: Callable[[], None]
    # Held open by processes that belong to this life and may outlive it by a moment:
    # what they ran must not begin elsewhere before.
    fence: int | None = None


class Life(ABC):
    """From the registration to the end; who asks it to stop is told by subclasses."""

    def __init__(self, birth: Birth) -> None:
        self._birth = birth
        self._page = birth.page
        self._database = birth.post.database
        self._metadata = birth.post.metadata
        self._wakeup = Wakeup()
        self._trouble = Patience()
        self._stop_by: float | None = None
        self._has_started = False
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
                supervisor_id=birth.supervisor_id,
                name=self.name,
                page=birth.page,
                trusts=lambda: self._heart.trusts,
                wake=self._wakeup.set,
                wake_supervisor=birth.wake_supervisor,
                show=self._show,
            )
        )

    @property
    def name(self) -> str:
        return name_of(self._birth.post.kind, self._birth.identity, pid=os.getpid())

    def wake_supervisor(self) -> None:
        self._birth.wake_supervisor()

    def live(self) -> int:
        """Serve until asked to stop; return what the end was like."""
        self._page.show_life()
        self._actor.prepare()
        if self._birth.fence is not None:
            # Only those have it now that were forked for it.
            os.close(self._birth.fence)
        dedicate(self._database, patience=STATEMENT_PATIENCE)
        if not self._boot():
            return ExitCode.DONE
        while not self._is_asked_to_stop():
            self._nap(self._patiently(self._actor.turn))
        return self._stop()

    # ── What depends on where it is lived ──────────────────────────────────────

    @abstractmethod
    def _heed(self) -> None:
        """Begin to stop, if that was asked for."""

    @abstractmethod
    def _leave_pruned(self) -> None:
        """It was taken for dead. Called by the heart."""

    @abstractmethod
    def _leave_distrusted(self) -> None:
        """Trust has run out: somebody else may soon run what runs here. Likewise."""

    @property
    def _must_leave(self) -> bool:
        """Is it to end without waiting for what runs?"""
        return False

    @property
    def _has_no_limit(self) -> bool:
        """May running tasks take as long as they like?"""
        return self._page.is_relieved

    @property
    def _lifelines(self) -> Sequence[int]:
        """What else may end a nap, by descriptor."""
        return ()

    # ── Birth ──────────────────────────────────────────────────────────────────

    def _boot(self) -> bool:
        """Get ready to work; False if asked to stop before."""
        if not self._is_registered():
            return False
        # Part of booting: who is up has been warmed up, however long that takes.
        self._has_started = True
        self._tell(process_started)
        self._actor.start()
        if clock.now() > self._page.last_beat + LONG_BOOT:
            # It was silent, and may have been taken for dead.
            self._is_registered()
        self._come_up()
        return True

    def _is_registered(self) -> bool:
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
            metadata=self._metadata,
            memory=rss(),
        )
        self._page.show_beat(begun)

    def _come_up(self) -> None:
        # Not earlier: who beats is not taken for stuck.
        self._heart.start()
        # Before it is up: who is up and has never come around is taken for stuck.
        self._page.show_turn()
        self._page.show_up()
        self.wake_supervisor()

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
        self._wakeup.wait(min(seconds, LONGEST_PAUSE), *self._lifelines)

    # ── The end ────────────────────────────────────────────────────────────────

    def _is_asked_to_stop(self) -> bool:
        self._heed()
        return self._stop_by is not None

    def _begin_to_stop(self) -> None:
        """Begin nothing new. Asked again, a limit may be set where there was none."""
        is_first = self._stop_by is None
        if self._has_no_limit:
            self._stop_by = math.inf
        elif self._stop_by in (None, math.inf):
            self._stop_by = clock.now() + current().shutdown_timeout.total_seconds()
        if is_first:
            self._actor.stop()
        if is_first and self._has_started:
            # Last: a hook that takes long does not put off the end.
            self._tell(process_stopping)

    def _stop(self) -> int:
        """Let running tasks finish, record what they came to, and sign off."""
        while True:
            pause = self._patiently(self._actor.turn)
            if not self._actor.is_busy:
                break
            if self._is_time_up():
                return self._leave_behind()
            self._nap(min(pause, self._time_left()))
        self._actor.finish(timeout=SECONDS_TO_FINISH)
        self._heart.stop()
        self._sign_off()
        return ExitCode.DONE

    def _leave_behind(self) -> int:
        """Give up what still runs. What comes to its end meanwhile is recorded."""
        self._page.show_leaving()
        self._actor.give_up()
        self._patiently(self._actor.turn)
        return ExitCode.LEFT_BEHIND

    def abandon(self) -> None:
        """End the threads of a life whose process goes on; those that run, later."""
        self._heart.stop(timeout=0)
        self._actor.finish(timeout=0)

    def _is_time_up(self) -> bool:
        self._heed()
        return self._must_leave or self._time_left() <= 0

    def _time_left(self) -> float:
        return LONGEST_PAUSE if self._stop_by is None else self._stop_by - clock.now()

    def _sign_off(self) -> None:
        try:
            Process.objects.using(self._database).strike_off(self._birth.identity)
        except Error as error:
            # The supervisor does it, or whoever prunes.
            logger.warning("%s could not sign off: %s", self.name, error)
        self._tell(process_exited)

    def _show(self, facts: Mapping[str, Any]) -> None:
        """Write in its row what it does from now on."""
        self._metadata = json.dumps({**json.loads(self._metadata), **facts})
        rows = Process.objects.using(self._database).filter(pk=self._birth.identity)
        rows.update(metadata=self._metadata)

    def _tell(self, signal: Signal) -> None:
        post = self._birth.post
        facts = ProcessFacts(
            kind=post.kind,
            name=self.name,
            pid=os.getpid(),
            database=self._database,
            details=json.loads(self._metadata),
        )
        tell_of_process(signal, post.actor, facts)
