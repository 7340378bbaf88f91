"""Job identifiers: UUIDs of version 7, made by the client.

They sort like time, so an index ordered by identifier is first in, first out, and
they are known before the insert. Order is exact within one process and follows the
hosts' clocks between processes.
"""

import os
import threading
import time
from uuid import UUID

_COUNTER_BITS = 12
_COUNTER_END = 1 << _COUNTER_BITS
_RANDOM_BITS = 62
_VERSION = 7 << 76
_VARIANT = 0b10 << _RANDOM_BITS


class _Sequence:
    """Milliseconds and a counter within them, never stepping back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.milliseconds = 0
        self.counter = 0

    def advance(self) -> tuple[int, int]:
        now = time.time_ns() // 1_000_000
        with self.lock:
            if now > self.milliseconds:
                self.milliseconds, self.counter = now, 0
            else:
                # The clock stands still, or was set back: count on.
                self._count_on()
            return self.milliseconds, self.counter

    def _count_on(self) -> None:
        self.counter += 1
        if self.counter == _COUNTER_END:
            self.milliseconds, self.counter = self.milliseconds + 1, 0


_sequence = _Sequence()


def new_job_id() -> UUID:
    """An identifier greater than every one this process made before."""
    milliseconds, counter = _sequence.advance()
    # Fresh entropy each time: a buffer would repeat itself in forked children.
    random = int.from_bytes(os.urandom(8)) >> 2
    return UUID(
        int=milliseconds << 80
        | _VERSION
        | counter << (80 - 4 - _COUNTER_BITS)
        | _VARIANT
        | random
    )


def _forget_lock_after_fork() -> None:
    # Another thread may have held the lock when the process was forked.
    _sequence.lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock_after_fork)
