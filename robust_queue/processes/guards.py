"""Guards: a task in a thread that can be interrupted when its time is up.

Python lets one thread raise an exception in another, wherever that one is: in the midst
of an ``except``, or holding a lock. So a process in which that was done is replaced as
soon as possible, and the exception must strike the task alone, never what comes after
it. Whoever takes the token first wins: either the task has ended, and nobody interrupts
it any more, or it is interrupted, and its end waits until that has come to pass.
"""

import ctypes
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

BETWEEN_LOOKS = 0.0005

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in.argtypes = (ctypes.c_ulong, ctypes.py_object)


class Interrupt(BaseException):
    """Raised in the midst of a task whose time is up. Nobody else knows it."""


class Guard:
    """Of one call of one task, in the thread that makes it."""

    def __init__(self, arm: Callable[["Guard"], None] = lambda guard: None) -> None:
        self._arm = arm
        self._thread = threading.get_ident()
        self._token = [True]
        self._is_sent = False
        # The task was interrupted, whatever it has come to.
        self.has_struck = False

    def call(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Call the task. When this returns or raises, no interrupt is on its way.

        And none comes before it is armed, in here.
        """
        try:
            self._arm(self)
            return function(*args, **kwargs)
        finally:
            self._end()

    def strike(self) -> bool:
        """Interrupt the task, unless it has ended. From another thread."""
        try:
            self._token.pop()
        except IndexError:
            return False
        self.has_struck = True
        _raise_in(self._thread, Interrupt)
        self._is_sent = True
        return True

    def _end(self) -> None:
        while True:
            try:
                self._close()
            except Interrupt:
                # Once it has struck, it cannot strike again.
                continue
            return

    def _close(self) -> None:
        with suppress(IndexError):
            self._token.pop()
            return
        # It is on its way, or the task has swallowed it: withdraw what is left of it.
        # By looks, since it could strike in the midst of whatever else waits.
        while not self._is_sent:
            time.sleep(BETWEEN_LOOKS)
        _raise_in(self._thread, ctypes.py_object())
