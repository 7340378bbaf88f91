"""What each process of a web server has for itself, one for each database."""

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Own(Generic[T]):
    """Made when it is asked for; anew in a process that was forked behind that."""

    def __init__(self, make: Callable[[str], T]) -> None:
        self._make = make
        self._made: dict[tuple[int, str], T] = {}

    def of(self, database: str) -> T:
        """That of this process and this database."""
        key = os.getpid(), database
        found = self._made.get(key)
        # Without a lock, which a fork might find held. One of two is kept.
        return found or self._made.setdefault(key, self._make(database))


def later(seconds: float, action: Callable[[], None]) -> None:
    """Call it in a thread of its own, unless the process ends before."""
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()
