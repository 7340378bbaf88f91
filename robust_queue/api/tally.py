"""What workers outside have done, in the statistics.

A worker of our own counts by itself. For others each process of the API counts what is
reported to it, under a name of its own, and writes it down a few seconds later. What it
has not written when it ends is missing from the charts.
"""

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self
from uuid import uuid4

from robust_queue.lifecycle.elsewhere import PerformedElsewhere
from robust_queue.lifecycle.perform import Performed
from robust_queue.lifecycle.report import Recorded
from robust_queue.processes.connections import dedicate, drop
from robust_queue.processes.ledger import Ledger
from robust_queue.reports import report
from robust_queue.stores.rows import Failed, Finished, Outcome

from .own import Own, later

# Seconds after which what was counted is written, however quiet it is.
LATEST = 10.0
# Seconds that a statement may take.
PATIENCE = 5


def count(database: str, recorded: Sequence[Recorded]) -> None:
    """Count attempts that have ended, which is written down soon."""
    if recorded:
        _books.of(database).add(recorded)


@dataclass(frozen=True, slots=True)
class _Ended:
    """An attempt as a ledger looks at it, without what may be large of it."""

    held: Recorded
    performed: Performed

    @classmethod
    def of(cls, recorded: Recorded) -> Self:
        claim = replace(recorded.claim, arguments="", metadata="")
        outcome = _without_texts(recorded.performed.outcome)
        performed = PerformedElsewhere(claim, outcome, database="")
        return cls(Recorded(claim, performed), performed)


def _without_texts(outcome: Outcome) -> Outcome:
    match outcome:
        case Finished():
            return replace(outcome, result="")
        case Failed():
            return replace(outcome, message="", traceback="")
    return outcome


class _Book:
    """What has ended, and the ledger into which one thread at a time writes it.

    Whoever reports never waits for that: a table may be locked, or a database gone.
    """

    def __init__(self, database: str) -> None:
        self._database = database
        self._ledger = Ledger(database, uuid4())
        self._ended = deque[_Ended]()
        self._writing = threading.Lock()
        self._is_awaited = False

    def add(self, recorded: Sequence[Recorded]) -> None:
        self._ended.extend(map(_Ended.of, recorded))
        self._await()

    def _await(self) -> None:
        if self._is_awaited:
            return
        try:
            later(LATEST, self.write)
        except RuntimeError as error:
            # No thread is to be had. Whoever reports next tries again.
            report(error, "statistics of workers outside were to be written")
        else:
            self._is_awaited = True

    def write(self) -> None:
        """Write what was counted; what cannot be written is tried again later."""
        with self._writing:
            self._is_awaited = False
            done = [self._ended.popleft() for _ in range(len(self._ended))]
            self._ledger.add(done, {each.held.claim.job_id for each in done})
            self._ledger.hurry()
            dedicate(self._database, patience=PATIENCE)
            self._ledger.write_if_due()
            drop(self._database)
        if not self._ledger.is_written:
            self._await()


_books = Own(_Book)
