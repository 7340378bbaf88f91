"""The gauge: a dispatcher notes how much is ready, and since when, each minute."""

import time
from collections.abc import Mapping, Sequence
from uuid import UUID

from robust_queue.lifecycle.depths import depths
from robust_queue.lifecycle.rollups import Depth, write_depths
from robust_queue.lifecycle.tallies import Entry, Window, windows


class Gauge:
    """Reads once in each minute, and writes as long as there is something to tell.

    Several dispatchers have rows of their own: whoever reads them takes the maximum.
    """

    def __init__(self, database: str, identity: UUID) -> None:
        self._database = database
        self._identity = identity
        self._minute: Window | None = None
        # Queues that had something ready.
        self._filled: frozenset[str] = frozenset()
        self._most: dict[Entry, Depth] = {}

    def read(self) -> None:
        """Read and write, unless that was done in this minute."""
        current = windows(time.time())
        if self._minute == current[0]:
            return
        # First: should something go wrong, it must not each time.
        self._minute = current[0]
        found = depths(self._database)
        # Who had something and has nothing now is told once more.
        emptied = dict.fromkeys(self._filled - found.keys(), Depth())
        if emptied or found:
            self._write(current, {**emptied, **found})
        self._filled = frozenset(found)

    def _write(self, current: Sequence[Window], seen: Mapping[str, Depth]) -> None:
        kept = {e: depth for e, depth in self._most.items() if e.window in current}
        entries = [Entry(window, name) for window in current for name in seen]
        told = {
            each: _most(kept.get(each, Depth()), seen[each.queue_name])
            for each in entries
        }
        self._most = {**kept, **told}
        write_depths(self._database, self._identity, told)


def _most(one: Depth, other: Depth) -> Depth:
    return Depth(max(one.ready, other.ready), max(one.latency, other.latency))
