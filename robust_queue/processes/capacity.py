"""Capacity: how many jobs to take at once without knowing of what kind they are.

A worker has room for so many synchronous tasks, one for each thread, and for so many
coroutines. A poll cannot tell the ones from the others. To take only what fits whatever
comes would leave most of the room empty; to take as much as there is room for would
keep jobs from workers that have the right room for them. So the worker goes by what
came before: it takes a few jobs more than there are free threads while these turn out
to be coroutines, and a few more than there is room for coroutines while these turn out
not to be. What does not fit goes back at once, and is not tried again for a while.
Tasks that run in processes of their own are a third kind, where there are any.
"""

import math
from collections.abc import Iterable, Set
from typing import NamedTuple

from robust_queue.configuration import WorkerConfiguration

from .foresight import MOST as AHEAD

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0


class Count(NamedTuple):
    """Jobs of each kind: for how many there is room, or how many came."""

    threads: int
    coroutines: int
    isolated: int = 0

    @property
    def total(self) -> int:
        return self.threads + self.coroutines + self.isolated


class Capacity:
    """What a worker asks for, and what it learns from the answers."""

    def __init__(self, whole: Count) -> None:
        # Threads are what a worker is there for; of others there may be a few, or none.
        self._synchronous = Allowance(whole.threads + AHEAD, size=whole.threads)
        self._coroutines = Allowance(whole.coroutines + AHEAD, size=0)
        self._isolated = Allowance(whole.isolated + AHEAD, size=1)
        every = (self._synchronous, self._coroutines, self._isolated)
        self._hopes = {kind: hope for kind, hope in enumerate(every) if whole[kind]}

    def expect_coroutines(self) -> None:
        """Look for coroutines even before the first one has come."""
        self._coroutines.expect()

    def limit(self, room: Count, *, now: float) -> int:
        """How many jobs to ask for."""
        if len(self._hopes) == 1:
            return sum(room[kind] for kind in self._hopes)
        more = {kind: min(hope.at(now), room[kind]) for kind, hope in self._each}
        whole = sum(more.values())
        # Should all be of one kind, but for what is hoped for of the others.
        return min(room[kind] + whole - more[kind] for kind in more)

    def learn(self, room: Count, came: Count, *, limit: int, now: float) -> None:
        """So many were asked for, with that much room, and these came."""
        for kind, hope in self._each:
            others = [each for each in self._hopes if each != kind]
            hope.learn(
                came[kind],
                is_tried=any(limit > room[each] for each in others),
                is_too_much=any(came[each] > room[each] for each in others),
                is_full=came.total == limit,
                now=now,
            )

    def pause(self, room: Count, *, now: float) -> float:
        """Seconds until more may be asked for with the same room; perhaps for ever."""
        waits = [hope.left(now) for kind, hope in self._each if room[kind]]
        return min(waits, default=math.inf)

    @property
    def _each(self) -> Iterable[tuple[int, "Allowance"]]:
        return self._hopes.items()


class Allowance:
    """How many jobs of one kind to hope for, beyond the room for the others."""

    def __init__(self, most: int, *, size: int) -> None:
        self._most = most
        self._size = size
        self._pause = FIRST_PAUSE
        self._rests_until = -math.inf

    def expect(self) -> None:
        """There are jobs of the kind."""
        self._size = min(max(self._size, 1), self._most)

    def at(self, now: float) -> int:
        """How many to hope for; none while it rests."""
        return self._size if now >= self._rests_until else 0

    def left(self, now: float) -> float:
        """Seconds until there is something to hope for."""
        return max(self._rests_until - now, 0.0) if self._size else math.inf

    def learn(
        self, came: int, *, is_tried: bool, is_too_much: bool, is_full: bool, now: float
    ) -> None:
        """So many of the kind came, and perhaps too many of the other."""
        if is_too_much:
            self._rest(now)
            self._resize(came)
        elif is_tried:
            self._pause = FIRST_PAUSE
            self._resize(2 * max(self._size, came) if is_full else self._size // 2)
        elif came and not self._size:
            self._resize(came)

    def _rest(self, now: float) -> None:
        self._rests_until = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _resize(self, size: int) -> None:
        # Whoever has had hope keeps a little.
        least = 1 if self._size else 0
        self._size = min(max(size, least), self._most)


def whole(configuration: WorkerConfiguration, expected: Set[str]) -> Count:
    """For how many jobs of each kind there is room, as far as any may come."""
    if "thread" not in expected:
        return Count(0, 0, configuration.most_isolated)
    isolated = configuration.most_isolated if "process" in expected else 0
    return Count(configuration.threads, configuration.coroutines, isolated)
