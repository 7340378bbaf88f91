"""The outbox: what has ended, gathered for a moment to be recorded all at once.

Nothing is lost meanwhile: each outcome is on the page before it comes here. What waits
for an outcome to be recorded waits a few milliseconds longer, and only while the worker
has other jobs at hand; whoever runs out of them does not wait.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable

from . import clock
from .held import Ended

# For so long, and for so many, an outcome may wait to be recorded.
DELAY = 0.01
MOST = 200
LARGEST_PORTION = 16 * 1024 * 1024  # characters


class Outbox:
    """Filled by the threads of the lanes, emptied by the main thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._ended: deque[Ended] = deque()
        self._since = math.inf
        self._is_urgent = False
        self._is_noticed = False
        # Collected, and not recorded yet: the database may be away.
        self.unsettled: list[Ended] = []

    def add(self, ended: Ended, *, is_urgent: bool) -> None:
        """Put an end in; the main thread is woken if it has reason to look.

        It is put in before anything is asked, and collect() asks for the opposite
        before it takes anything out. So either it is seen or the main thread is woken.
        """
        self._ended.append(ended)
        has_become_urgent = is_urgent and not self._is_urgent
        if has_become_urgent:
            self._is_urgent = True
        is_noticed, self._is_noticed = self._is_noticed, True
        if not is_noticed:
            self._since = clock.now()
        if not is_noticed or has_become_urgent or len(self._ended) == MOST:
            self._wake()

    @property
    def patience(self) -> float:
        """Seconds until it should be emptied; none if it is empty, or cannot wait."""
        if not self._ended or self.unsettled or self._is_urgent:
            return 0.0
        if len(self._ended) >= MOST:
            return 0.0
        return max(min(self._since - clock.now(), 0.0) + DELAY, 0.0)

    def collect(self) -> list[Ended]:
        """Take out what has come since the last time; all of it is to be settled."""
        self._is_urgent = self._is_noticed = False
        new = [self._ended.popleft() for _ in range(len(self._ended))]
        self.unsettled += new
        return new

    def portion(self) -> list[Ended]:
        """Those that were performed: as many of them as one statement may carry."""
        found, size = list[Ended](), 0
        for each in self.unsettled:
            if each.performed:
                size += each.performed.outcome.size
                if found and size > LARGEST_PORTION:
                    break
                found.append(each)
        return found

    def forget(self, settled: Iterable[Ended]) -> None:
        """These are recorded, or given back."""
        gone = set(settled)
        self.unsettled = [each for each in self.unsettled if each not in gone]
