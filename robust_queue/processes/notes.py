"""Signals: the handlers take a note, the loops read the notes."""

import os
import signal
import threading
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from signal import Signals
from types import FrameType

from .wakeup import Wakeup


class Notes:
    """Signals that were received and not yet heeded."""

    def __init__(self, wakeup: Wakeup) -> None:
        self._wakeup = wakeup
        self._noted: set[Signals] = set()
        self._received: deque[Signals] = deque()

    def take_of(self, *numbers: Signals) -> None:
        """Note these signals from now on, in place of whatever was done so far."""
        self._noted |= {*numbers}
        for number in numbers:
            signal.signal(number, self._note)

    def take_no_more(self) -> None:
        """From now on, signals do to the process what they do to any other."""
        for number in self._noted:
            signal.signal(number, signal.SIG_DFL)

    def read(self) -> Iterator[Signals]:
        """What has been received since the last reading, in order."""
        while self._received:
            yield self._received.popleft()

    def add(self, number: Signals) -> None:
        """Note a signal as if it had been received. Safe from any thread."""
        self._received.append(number)
        self._wakeup.set()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.add(Signals(number))


@cache
def spare_forks() -> None:
    """Let what tasks fork heed signals as usual, from the first moment on.

    It is born with the handlers of this process, and would take notes that nobody
    reads: a pool of processes could never be terminated.
    """
    # Once: forks inherit it.
    os.register_at_fork(
        before=_forks.withhold,
        after_in_parent=_forks.let_through,
        after_in_child=_forks.begin_anew,
    )


class _Forks(threading.local):
    """Signals are withheld around a fork, by the thread that forks."""

    _before: Collection[int] = ()

    def withhold(self) -> None:
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEEDED)

    def let_through(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def begin_anew(self) -> None:
        for number in filter(_is_ours, _HEEDED):
            is_interrupt = number is Signals.SIGINT
            usual = signal.default_int_handler if is_interrupt else signal.SIG_DFL
            signal.signal(number, usual)
        self.let_through()


def _is_ours(number: Signals) -> bool:
    """Whatever else was set, or ignored, is the application's to decide."""
    module = getattr(signal.getsignal(number), "__module__", None) or ""
    return module.startswith("robust_queue.")


_HEEDED = {
    Signals.SIGTERM,
    Signals.SIGINT,
    Signals.SIGQUIT,
    Signals.SIGHUP,
    Signals.SIGCHLD,
}
_forks = _Forks()


@contextmanager
def withheld(*numbers: Signals) -> Iterator[None]:
    """Keep signals back for the block; they are delivered after it.

    A child is born with its parent's handlers. A signal that reaches it before it has
    its own would be noted in a copy of the parent's notes, which nobody reads.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
