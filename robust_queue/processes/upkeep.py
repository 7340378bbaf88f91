"""Upkeep: what a dispatcher does besides, in slices that nobody has to wait for."""

from collections.abc import Iterator

from robust_queue.lifecycle.sweep import Sweeps

from . import clock
from .actor import jittered
from .patience import Patience

SWEEP_PAUSE = 60.0
FIRST_PAUSE = 30.0  # whoever has just been started has more urgent things to do
SLICE = 0.02
# So many times as long as a slice took, it rests: a database that is slow, because it
# has much to do, is asked for less.
REST = 3


class Upkeep:
    """Sweeps once a minute; a long sweep is spread over many turns."""

    def __init__(self, database: str) -> None:
        self._sweeps = Sweeps(database)
        self._steps: Iterator[None] | None = None
        self._next = clock.now() + jittered(FIRST_PAUSE)
        self._trouble = Patience(first=1.0, longest=SWEEP_PAUSE)

    def turn(self) -> float:
        """Do a slice, if it is time; return the seconds until the next one."""
        if clock.now() >= self._next:
            self._next = clock.now() + self._patiently()
        return max(self._next - clock.now(), 0.0)

    def _patiently(self) -> float:
        try:
            pause = self._slice()
        except BaseException:
            # Whoever called is told, and must not meet the same error in every turn.
            self._steps = None
            self._next = clock.now() + self._trouble.fail()
            raise
        self._trouble.succeed()
        return pause

    def _slice(self) -> float:
        begun = clock.now()
        self._steps = self._steps or self._sweeps.sweep()
        for _ in self._steps:
            taken = clock.now() - begun
            if taken >= SLICE:
                return REST * taken
        self._steps = None
        return jittered(SWEEP_PAUSE)
