"""Errands: work that is done in a process of its own, so that nobody waits for it.

Burying and pruning run code that may take long or hang: the database, the backoff of a
task, whoever listens for its end. None of it may keep a supervisor from its signals.
"""

import logging
import os
import signal
from collections.abc import Callable
from functools import partial
from signal import SIG_DFL, SIG_IGN, SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM
from typing import NoReturn

from . import clock
from .connections import dedicate
from .exits import ExitCode, leave
from .forking import exit_code_of, fork
from .patience import Patience

logger = logging.getLogger("robust_queue")

PATIENCE = 5  # seconds per statement
LONGEST = 60.0

Work = Callable[[], object]


class Errand:
    """Work that is sent out, and sent out again until it has been done."""

    def __init__(self, work: Work, *, database: str, on_birth: Work) -> None:
        self._work = work
        self._database = database
        self._on_birth = on_birth
        self._patience = Patience(longest=30.0)
        self._pid: int | None = None
        self._begun = 0.0

    def further(self) -> bool:
        """Take the next step; tell whether it has been done."""
        if self._pid is None:
            self._send()
            return False
        code = exit_code_of(self._pid)
        if code is None:
            self._end_if_overdue()
            return False
        self._pid = None
        if code:
            self._patience.fail()
        return not code

    def give_up(self) -> None:
        """End it, wherever it is."""
        if self._pid is not None:
            os.kill(self._pid, SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = None

    def _send(self) -> None:
        if not self._patience.is_over:
            return
        try:
            self._pid = fork(partial(_run, self._work, self._database, self._on_birth))
        except OSError as error:
            logger.warning(
                "Cannot fork, again in %.1f s: %s", self._patience.fail(), error
            )
        self._begun = clock.now()

    def _end_if_overdue(self) -> None:
        if self._pid is not None and clock.now() > self._begun + LONGEST:
            logger.error("Somebody who was told of a crash does not come to an end.")
            os.kill(self._pid, SIGKILL)


def _run(work: Work, database: str, on_birth: Work) -> NoReturn:
    code = ExitCode.BROKEN
    try:
        on_birth()
        _heed_signals()
        dedicate(database, patience=PATIENCE)
        work()
        code = ExitCode.DONE
    except BaseException as error:
        logger.warning("Not done, and tried again: %s", error)
        logger.debug("Because of", exc_info=error)
    finally:
        leave(code)


def _heed_signals() -> None:
    """Those for the whole group are the supervisor's to act on."""
    for number in (SIGTERM, SIGINT, SIGHUP):
        signal.signal(number, SIG_IGN)
    for number in (SIGQUIT, SIGCHLD):
        signal.signal(number, SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
