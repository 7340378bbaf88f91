"""Rounds: what is looked after now and then, each at its own pace."""

import random
from collections.abc import Callable, Set
from dataclasses import dataclass, field

from . import clock
from .actor import jittered

LONGEST_FIRST_PAUSE = 60.0


@dataclass(slots=True)
class Round:
    """Something to be done again and again, as long as one of its tables has rows.

    One without tables is always done.
    """

    pause: float
    action: Callable[[], object]
    tables: Set[str] = frozenset()
    next: float = field(init=False)

    def __post_init__(self) -> None:
        # Not all at once, nor first of all: there is something more urgent to do.
        first = random.uniform(0.2, 1.0) * min(self.pause, LONGEST_FIRST_PAUSE)  # noqa: S311
        self.next = clock.now() + first

    def go_if_due(self, tables: Set[str]) -> None:
        """Do it, if it is time, and if there are rows in any of its tables.

        An error is raised, and does not bring it forward.
        """
        if self.tables and tables.isdisjoint(self.tables):
            return
        if clock.now() >= self.next:
            self.next = clock.now() + jittered(self.pause)
            self.action()
