"""Operating: what somebody wants done to very many jobs, a batch at a time."""

from collections.abc import Set
from uuid import UUID

from robust_queue.lifecycle.operations import carry_out

from . import clock
from .actor import jittered

# Seconds between two looks for something that nobody else is at.
BETWEEN_LOOKS = 1.0
# Between two batches it rests as long as the last one took, up to this: dispatching and
# the database have at least half of the time for themselves.
LONGEST_REST = 1.0
# Longer than anybody sleeps between two looks.
LONG = 60.0
OPERATIONS = {"operations"}


class Operating:
    """Carries out operations while there are any. Each turn does one batch at most."""

    def __init__(self, database: str, process_id: UUID) -> None:
        self._database = database
        self._process_id = process_id
        self._next = 0.0
        self._is_under_way = False

    @property
    def pause(self) -> float:
        """Seconds until the next batch; without any, whoever calls knows better."""
        return max(self._next - clock.now(), 0.0) if self._is_under_way else LONG

    def go_on(self, tables: Set[str]) -> None:
        """Do a batch, if it is time, and if the survey says that one is open."""
        if clock.now() < self._next or tables.isdisjoint(OPERATIONS):
            return
        # First: should something go wrong, it must not in every turn.
        self._is_under_way = False
        begun = clock.now()
        self._next = begun + jittered(BETWEEN_LOOKS)
        if carry_out(self._database, self._process_id):
            self._is_under_way = True
            taken = clock.now() - begun
            self._next = clock.now() + min(taken, LONGEST_REST)
