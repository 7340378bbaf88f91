"""The diary: which isolated tasks ran where, since when, and what they have written.

Filled by the keeper, written down by the main thread of the worker. What is over before
it was written down takes one statement, not two.
"""

import logging
import math
import socket
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import Error, connections
from django.utils import timezone

from robust_queue.models import IsolatedRun
from robust_queue.processes import clock

logger = logging.getLogger("robust_queue")

# Seconds after which a task that is not over is written down. Short ones are over.
DELAY = 0.2
BATCH = 100
MOST_TRIES = 3

_UNIQUE = ["job", "attempts"]
_CHANGED = [
    *("node", "pid", "reserved_at", "started_at", "finished_at", "exit", "output"),
]


@dataclass(slots=True, eq=False, kw_only=True)
class Entry:
    """One attempt of one job."""

    job_id: UUID
    attempts: int
    reserved_at: datetime
    started_at: datetime
    pid: Callable[[], int]
    finished_at: datetime | None = None
    exit: str = ""
    output: str = ""
    due: float = 0.0
    tries: int = 0


class Diary:
    """Entries that are to be written down, as they are by then."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._node = socket.gethostname()[:128]
        self._entries: dict[Entry, None] = {}

    def begin(self, entry: Entry) -> None:
        entry.due = clock.now() + DELAY
        self._entries[entry] = None

    def end(self, entry: Entry) -> None:
        """To be called before the end itself is told, so that it is not overtaken."""
        entry.finished_at = timezone.now()
        entry.due = 0.0
        self._entries[entry] = None

    @property
    def patience(self) -> float:
        """Seconds until something is to be written down; ends are when settled."""
        dues = [each.due for each in list(self._entries) if not each.finished_at]
        return max(min(dues, default=math.inf) - clock.now(), 0.0)

    def write(self) -> None:
        """Write down what is due. What is refused is no reason to settle nothing."""
        due = [each for each in list(self._entries) if self._is_due(each)][:BATCH]
        # Before: one that ends meanwhile is entered again.
        for entry in due:
            del self._entries[entry]
        try:
            if due:
                self._store(due)
        except Error as error:
            self._try_again(due, error, is_refused=self._is_answered())

    def _is_due(self, entry: Entry) -> bool:
        if entry.due > clock.now():
            return False
        if entry.finished_at is None and not entry.pid():
            # Its process is on its way.
            entry.due = clock.now() + DELAY
            return False
        return True

    def _is_answered(self) -> bool:
        """Does the server go on to answer? Then it has refused what it was told."""
        connection = connections[self._database]
        return connection.connection is not None and connection.is_usable()

    def _try_again(
        self, entries: Iterable[Entry], error: Error, *, is_refused: bool
    ) -> None:
        for entry in entries:
            entry.due = clock.now() + 1 + entry.tries
            if is_refused:
                entry.tries += 1
                # The text may be what the server does not take.
                entry.output = ascii(entry.output)[1:-1]
            if entry.tries < MOST_TRIES:
                self._entries[entry] = None
            else:
                logger.warning("No account of job %s: %s", entry.job_id, error)

    def _store(self, entries: Collection[Entry]) -> None:
        features = connections[self._database].features
        has_target = features.supports_update_conflicts_with_target
        IsolatedRun.objects.using(self._database).bulk_create(
            [self._row(each) for each in entries],
            update_conflicts=True,
            update_fields=_CHANGED,
            unique_fields=_UNIQUE if has_target else None,
        )

    def _row(self, entry: Entry) -> IsolatedRun:
        return IsolatedRun(
            job_id=entry.job_id,
            attempts=entry.attempts,
            node=self._node,
            pid=entry.pid(),
            reserved_at=entry.reserved_at,
            started_at=entry.started_at,
            finished_at=entry.finished_at,
            exit=entry.exit,
            output=entry.output,
        )
