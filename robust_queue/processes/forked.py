"""A family of processes: children and errands are born by fork."""

import gc
import logging
import os
import select
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from signal import (
    SIG_DFL,
    SIG_IGN,
    SIGCHLD,
    SIGHUP,
    SIGINT,
    SIGKILL,
    SIGQUIT,
    SIGTERM,
    Signals,
)
from typing import NoReturn

from . import child, clock
from .children import Child
from .connections import dedicate
from .errands import PATIENCE, Errand, Work
from .exits import ExitCode, leave
from .families import Family
from .forking import exit_code_of, fork
from .life import Birth

logger = logging.getLogger("robust_queue")

# Seconds for which it is waited at a time for what a child leaves behind, and in all.
MOMENT = 0.05
LONGEST_FENCE = 30.0


class ForkedFamily(Family):
    """The default: a task that crashes its process harms only those beside it."""

    def __init__(self, *, let_go: Sequence[Callable[[], None]] = ()) -> None:
        # Held open by this process alone: its end can be noticed at the other one.
        self._lifeline, self._end_of_lifeline = os.pipe()
        self._let_go = let_go

    def prepare(self) -> None:
        others = [each.name for each in threading.enumerate()][1:]
        if others:
            logger.warning(
                "Threads run in the supervisor, and forking is not safe beside them: "
                "%s. Start them in tasks, not when modules are imported.",
                ", ".join(others),
            )
        # What exists now is shared with every child for as long as nobody touches it.
        gc.collect()
        gc.freeze()

    def bear(self, birth: Birth) -> Child:
        fence, end_of_fence = os.pipe()
        live = partial(
            child.live,
            replace(birth, fence=end_of_fence),
            lifeline=self._lifeline,
            supervisor_pid=os.getpid(),
        )
        try:
            pid = fork(partial(self._begin_life, live))
        except OSError:
            os.close(fence)
            raise
        finally:
            os.close(end_of_fence)
        return ForkedChild(
            post=birth.post,
            pid=pid,
            identity=birth.identity,
            page=birth.page,
            fence=fence,
        )

    def errand(self, work: Work, *, database: str) -> Errand:
        return ForkedErrand(work, database=database, on_birth=self._close_inherited)

    def _begin_life(self, live: Callable[[], NoReturn]) -> NoReturn:
        try:
            self._close_inherited()
        finally:
            live()

    def _close_inherited(self) -> None:
        os.close(self._end_of_lifeline)
        for let_go in self._let_go:
            let_go()


@dataclass(slots=True, kw_only=True, eq=False)
class ForkedChild(Child):
    """A process, which hears signals."""

    # Can be read once all that belonged to it is gone as well.
    fence: int | None = None
    code: int | None = None
    died: float | None = None

    def ask_to_stop(self) -> None:
        self._signal(SIGTERM)

    def make_leave(self) -> None:
        self._signal(SIGQUIT)

    def kill(self) -> bool:
        self._signal(SIGKILL)
        return True

    def collect(self) -> int | None:
        if self.died is None:
            self.code = exit_code_of(self.pid)
            self.died = None if self.code is None else clock.now()
        if self.died is None or self._is_fenced(self.died):
            return None
        return self.code

    def ended_at(self) -> float:
        return clock.now() if self.died is None else self.died

    @property
    def is_gone(self) -> bool:
        return self.died is not None

    def _is_fenced(self, since: float) -> bool:
        """Does anything go on that it ran in processes of their own?

        They are killed this very moment, so it is waited for. What the kernel does not
        let go is not waited for without end.
        """
        if self.fence is None:
            return False
        gone = select.poll()
        gone.register(self.fence, select.POLLIN)
        if not gone.poll(MOMENT * 1000) and clock.now() < since + LONGEST_FENCE:
            return True
        os.close(self.fence)
        return False

    def _signal(self, number: Signals) -> None:
        if self.died is not None:
            return  # its number may be somebody else's
        # It has not been waited for, so the number is still its own, unless somebody
        # else has waited for it.
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


class ForkedErrand(Errand):
    """Work in a process of its own, which can be ended wherever it is."""

    def __init__(self, work: Work, *, database: str, on_birth: Work) -> None:
        super().__init__()
        self._work = work
        self._database = database
        self._on_birth = on_birth
        self._pid: int | None = None

    def send(self) -> None:
        self._pid = fork(partial(_run, self._work, self._database, self._on_birth))

    def succeeded(self) -> bool | None:
        code = exit_code_of(self._pid) if self._pid else ExitCode.BROKEN
        if code is None:
            return None
        self._pid = None
        return not code

    def end(self) -> None:
        if self._pid is not None:
            os.kill(self._pid, SIGKILL)

    def give_up(self) -> None:
        self.end()
        if self._pid is not None:
            os.waitpid(self._pid, 0)
            self._pid = None


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
