"""A nap that anybody may end: a signal handler, another thread, the end of a parent."""

import os
import select
from collections.abc import Callable
from contextlib import suppress


class Wakeup:
    """A pipe to oneself. Being woken before the nap counts: no call is lost."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # Not by a call: whoever may still wake it holds it, and its number on the pipe
        # must not be somebody else's by then. At the very end modules are gone.
        for end in (self._read, self._write):
            try:  # noqa: SIM105
                close(end)
            except OSError:
                pass

    def set(self) -> None:
        """End the nap under way, or the next one. Safe in signal handlers."""
        # A full pipe has been written to often enough.
        with suppress(BlockingIOError):
            os.write(self._write, b"\0")

    def wait(self, seconds: float, *others: int) -> None:
        """Sleep, unless woken or until one of the other descriptors can be read."""
        poll = select.poll()
        for descriptor in (self._read, *others):
            poll.register(descriptor, select.POLLIN)
        poll.poll(max(seconds, 0) * 1000)
        self.drain()

    def fileno(self) -> int:
        """Can be read once it was set, for whoever waits in another way."""
        return self._read

    def drain(self) -> None:
        """Whatever it was set for is heeded by now."""
        with suppress(BlockingIOError):
            while os.read(self._read, 4096):
                pass
