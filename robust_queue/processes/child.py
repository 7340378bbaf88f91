"""A child: a life with a process of its own, from a fork to ``os._exit``.

It never returns into the code of its parent, which would clean up what is not its own.
"""

import json
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from signal import SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM
from types import FrameType
from typing import Any, NoReturn

from . import titles
from .exits import ExitCode, leave
from .life import Birth, Life
from .notes import Notes, spare_forks

logger = logging.getLogger("robust_queue")


def live(birth: Birth, *, lifeline: int, supervisor_pid: int) -> NoReturn:
    """Be a child, to the end."""
    code: int = ExitCode.BROKEN
    try:
        child = ChildProcess(birth, lifeline=lifeline, supervisor_pid=supervisor_pid)
        child.heed_signals()
        child.show_title()
        code = child.live()
    except BaseException:
        logger.exception("The %s broke down.", birth.post.kind.lower())
    finally:
        leave(code)


class ChildProcess(Life):
    """Hears signals, and notices when its parent is gone."""

    def __init__(self, birth: Birth, *, lifeline: int, supervisor_pid: int) -> None:
        super().__init__(birth)
        self._notes = Notes(self._wakeup)
        # Can be read once the parent is gone, whatever became of it.
        self._lifeline = lifeline
        self._supervisor_pid = supervisor_pid
        self._is_orphan = False

    def heed_signals(self) -> None:
        """Take the signals that were withheld so far."""
        self._notes.take_of(SIGTERM, SIGINT)
        # At once, wherever the main thread is. The claims are the supervisor's to
        # return, once this process is gone.
        signal.signal(SIGQUIT, self._quit)
        signal.signal(SIGCHLD, signal.SIG_DFL)
        # The terminal is gone: the supervisor decides what that means. Not ignored, or
        # programs that tasks start would inherit that.
        signal.signal(SIGHUP, _pass_over)
        # Tasks may fork, and would wonder why nobody hears them.
        spare_forks()
        # Withheld by the parent until now.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def show_title(self) -> None:
        kind, details = self._birth.post.kind, json.loads(self._metadata)
        titles.show(titles.title_of(kind, details))

    def _show(self, facts: Mapping[str, Any]) -> None:
        super()._show(facts)
        self.show_title()

    # ── Being asked to stop ────────────────────────────────────────────────────

    def _heed(self) -> None:
        if not self._is_orphan and os.getppid() != self._supervisor_pid:
            logger.warning("%s has lost its supervisor and stops.", self.name)
            self._is_orphan = True
            self._begin_to_stop()
        if any(self._notes.read()):
            self._begin_to_stop()

    @property
    def _has_no_limit(self) -> bool:
        # Nobody would return the claims of an orphan: its tasks may finish.
        return self._is_orphan or super()._has_no_limit

    @property
    def _lifelines(self) -> Sequence[int]:
        return () if self._is_orphan else (self._lifeline,)

    # ── Ends that do not wait: of the heart, in its own thread, or by a signal ──

    def _leave_pruned(self) -> None:
        logger.error("%s was taken for dead: its jobs are no longer its.", self.name)
        os._exit(ExitCode.PRUNED)

    def _leave_distrusted(self) -> None:
        if self._page.runs_what_runs_again():
            logger.error("%s cannot reach the database and ends.", self.name)
            os._exit(ExitCode.FENCED)

    def _quit(self, number: int, frame: FrameType | None) -> None:
        self._page.show_leaving()
        os._exit(ExitCode.QUIT)


def _pass_over(number: int, frame: FrameType | None) -> None:
    """Do nothing."""
