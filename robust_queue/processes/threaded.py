"""A family of threads: everything in one process, which may be a web server's.

Nobody can end a thread. So nothing here leaves before its time: a life that was taken
for dead begins nothing new and is followed by another one. What still runs when the
time to stop is up goes back to the queue, and its thread ends with the process.
"""

import logging
import os
import threading
from dataclasses import dataclass

from django.db import connections

from .children import Child
from .connections import dedicate
from .errands import PATIENCE, Errand, Work
from .exits import ExitCode
from .families import Family
from .life import Birth, Life

logger = logging.getLogger("robust_queue")


class ThreadedFamily(Family):
    """Members share a process, and with it one interpreter lock."""

    def prepare(self) -> None:
        """Threads can be begun at any time."""

    def bear(self, birth: Birth) -> Child:
        life = ThreadLife(birth)
        return ThreadedChild(
            post=birth.post,
            pid=os.getpid(),
            identity=birth.identity,
            page=birth.page,
            thread=LifeThread(life),
        )

    def errand(self, work: Work, *, database: str) -> Errand:
        return ThreadedErrand(work, database=database)


class ThreadLife(Life):
    """A life that is asked to stop by a call."""

    # Plain values, written by other threads and read at the next turn.
    _is_asked = False
    _is_to_leave = False
    _is_pruned = False

    def ask_to_stop(self) -> None:
        self._is_asked = True
        self._wakeup.set()

    def make_leave(self) -> None:
        self._is_to_leave = True
        self.ask_to_stop()

    def _heed(self) -> None:
        if self._is_asked:
            self._is_asked = False
            self._begin_to_stop()

    @property
    def _must_leave(self) -> bool:
        return self._is_to_leave

    def _leave_pruned(self) -> None:
        if not self._is_pruned:
            logger.error("%s was taken for dead: its jobs are not its.", self.name)
        self._is_pruned = True
        self.make_leave()

    def _leave_behind(self) -> int:
        # Its claims are not its own to give back.
        return ExitCode.PRUNED if self._is_pruned else super()._leave_behind()

    def _leave_distrusted(self) -> None:
        """Nothing new is begun. What runs cannot be ended."""


class LifeThread(threading.Thread):
    """The thread of a life, and what became of it."""

    def __init__(self, life: ThreadLife) -> None:
        super().__init__(name=f"robust_queue {life.name}", daemon=True)
        self.life = life
        self.exit_code: int | None = None
        self.start()

    def run(self) -> None:
        code: int = ExitCode.BROKEN
        try:
            code = self.life.live()
        except BaseException:
            logger.exception("%s broke down.", self.life.name)
        finally:
            self._tidy_up(code)
            # Whatever went wrong: nobody is to take it for alive.
            self.exit_code = code
            self.life.wake_supervisor()

    def _tidy_up(self, code: int) -> None:
        try:
            if code != ExitCode.DONE:
                self.life.abandon()
            connections.close_all()
        except Exception:
            logger.exception("%s left something behind.", self.life.name)


@dataclass(slots=True, kw_only=True, eq=False)
class ThreadedChild(Child):
    """A thread, which has to be asked."""

    thread: LifeThread

    def ask_to_stop(self) -> None:
        self.thread.life.ask_to_stop()

    def make_leave(self) -> None:
        self.thread.life.make_leave()

    def kill(self) -> bool:
        return False

    def collect(self) -> int | None:
        return self.thread.exit_code


class ThreadedErrand(Errand):
    """Work in a thread of its own. One that is given up is heeded no more."""

    def __init__(self, work: Work, *, database: str) -> None:
        super().__init__()
        self._work = work
        self._database = database
        self._outcome: bool | None = None
        self._thread: threading.Thread | None = None

    def send(self) -> None:
        self._outcome = None
        self._thread = threading.Thread(
            target=self._run, name="robust_queue errand", daemon=True
        )
        self._thread.start()

    def succeeded(self) -> bool | None:
        return self._outcome

    def end(self) -> None:
        # It may come to its end in secret.
        self._thread, self._outcome = None, False

    def give_up(self) -> None:
        self._thread = None

    def _run(self) -> None:
        outcome = False
        try:
            dedicate(self._database, patience=PATIENCE)
            self._work()
            outcome = True
        except BaseException as error:
            logger.warning("Not done, and tried again: %s", error)
            logger.debug("Because of", exc_info=error)
        finally:
            connections.close_all()
            if self._thread is threading.current_thread():
                self._outcome = outcome
