"""The nursery: a process with one thread, which can fork at any time.

It bears solitary processes for its worker, sends them signals, and tells how they have
ended, after everything that they have left behind is gone as well.
"""

import gc
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from signal import SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM
from types import FrameType
from typing import NoReturn

from robust_queue.processes import titles
from robust_queue.processes.exits import ExitCode, leave
from robust_queue.processes.forking import exit_code_of, fork
from robust_queue.processes.wakeup import Wakeup
from robust_queue.reports import report

from . import kernel, solitary
from .solitary import Terms
from .wire import Line, Message, line_and_end

LONGEST_NAP = 1.0
# Seconds for which it looks whether those that were killed are gone, and how often.
PATIENCE = 1.0
BETWEEN_LOOKS = 0.002


class Nursery:
    """The nursery as its worker knows it. To be used by one thread."""

    def __init__(self, terms: Terms) -> None:
        self.line, end = line_and_end()
        live = partial(_live, end, self.line, terms, worker_pid=os.getpid())
        self.pid = fork(live)
        end.close()

    def bear(self, number: int, line: socket.socket, output: int) -> None:
        """Ask for a process of that number, which listens here and writes there."""
        self.line.post([line.fileno(), output], bear=number)

    def signal(self, number: int, sent: int, *, to_group: bool = True) -> None:
        """Have a signal sent to a process, or to all of its group."""
        self.line.post(signal=number, sent=sent, to_group=to_group)

    def close(self, timeout: float) -> None:
        """Have all of them ended, and itself at last."""
        self.line.close()
        ends = time.monotonic() + timeout
        while exit_code_of(self.pid) is None and time.monotonic() < ends:
            time.sleep(BETWEEN_LOOKS)


def _live(
    end: socket.socket, other_end: Line, terms: Terms, *, worker_pid: int
) -> NoReturn:
    code: int = ExitCode.BROKEN
    try:
        # Held by the worker alone: its end can be noticed here.
        other_end.close()
        _Nursing(Line(end), terms, worker_pid).live()
        code = ExitCode.DONE
    except BaseException as error:
        report(error, "processes were born and reaped")
    finally:
        leave(code)


class _Nursing:
    """The life of the nursery."""

    def __init__(self, line: Line, terms: Terms, worker_pid: int) -> None:
        self._line = line
        self._terms = terms
        self._worker_pid = worker_pid
        self._wakeup = Wakeup()
        self._living: dict[int, int] = {}  # the process of each number
        self._is_over = False

    def live(self) -> None:
        self._heed_signals()
        titles.show("robust_queue: nursery of isolated tasks")
        # Shared with every process that is born, while nobody touches it.
        gc.collect()
        gc.freeze()
        try:
            while not self._is_over:
                self._turn()
        finally:
            self._end_all()

    def _turn(self) -> None:
        self._wakeup.wait(LONGEST_NAP, self._line.fileno())
        try:
            for message in self._line.arrived():
                self._heed(message)
            self._reap()
        except (EOFError, ConnectionError):
            self._is_over = True
        # A fork of the worker may hold the other end open.
        self._is_over = self._is_over or os.getppid() != self._worker_pid

    def _heed_signals(self) -> None:
        # What is meant for a whole service or terminal is the worker's to act on.
        for number in (SIGINT, SIGQUIT, SIGHUP):
            signal.signal(number, _pass_over)
        for number in (SIGTERM, SIGCHLD):
            signal.signal(number, self._wake)
        kernel.adopt_orphans()
        kernel.hear_of_parent(SIGTERM)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _wake(self, number: int, frame: FrameType | None) -> None:
        self._wakeup.set()

    def _heed(self, message: Message) -> None:
        if "bear" in message:
            self._bear(message["bear"])
        elif message["signal"] in self._living:
            send = os.killpg if message["to_group"] else os.kill
            self._send(send, self._living[message["signal"]], message["sent"])

    # ── Births ─────────────────────────────────────────────────────────────────

    def _bear(self, number: int) -> None:
        wire, output = self._line.descriptors(2)
        try:
            live = partial(self._begin_life, wire, output, nursery_pid=os.getpid())
            self._living[number] = pid = fork(live)
        except OSError as error:
            self._line.say(stillborn=number, reason=str(error))
        else:
            self._line.say(born=number, pid=pid)
        finally:
            os.close(wire)
            os.close(output)

    def _begin_life(self, wire: int, output: int, *, nursery_pid: int) -> NoReturn:
        self._line.close()
        line = Line(socket.socket(fileno=wire))
        solitary.live(line, output, self._terms, nursery_pid=nursery_pid)

    # ── Ends ───────────────────────────────────────────────────────────────────

    def _reap(self) -> None:
        ended = [each for each in self._living.items() if _has_ended(each[1])]
        for number, pid in ended:
            # Before it is reaped: its number is that of its group until then.
            self._send(os.killpg, pid, SIGKILL)
            code = exit_code_of(pid)
            del self._living[number]
            self._end_orphans()
            self._line.say(gone=number, code=code)

    def _end_orphans(self) -> None:
        """End what was left behind: it has become this process's since its parent died.

        Again and again: each may have had children, or have just made some.
        """
        ends = time.monotonic() + PATIENCE
        while orphans := kernel.children() - {*self._living.values()}:
            for pid in orphans:
                self._send(os.kill, pid, SIGKILL)
                exit_code_of(pid)
            if time.monotonic() > ends:
                break  # they are stuck in the kernel; the next end looks again
            time.sleep(BETWEEN_LOOKS)

    def _end_all(self) -> None:
        for pid in self._living.values():
            self._send(os.killpg, pid, SIGKILL)
        # All of them are to be waited for, and what they leave.
        self._living.clear()
        self._end_orphans()

    def _send(self, send: Callable[[int, int], None], pid: int, number: int) -> None:
        try:
            send(pid, number)
        except OSError:
            # Its group may not have been made yet.
            with suppress(OSError):
                os.kill(pid, number)


def _has_ended(pid: int) -> bool:
    """Without reaping it. Who has been reaped by somebody else has ended as well."""
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return found is not None


def _pass_over(number: int, frame: FrameType | None) -> None:
    """Do nothing."""
