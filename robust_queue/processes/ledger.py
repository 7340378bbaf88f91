"""The ledger: a worker counts what has ended, and writes it down once a minute.

Counting is part of the way of every job, and so has to cost next to nothing. Ends are
counted exactly. Of many at once only some are asked how long they took, and stand for
the others.
"""

import logging
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Protocol
from uuid import UUID

from django.db import Error

from robust_queue.lifecycle.durations import step_of
from robust_queue.lifecycle.perform import Performed
from robust_queue.lifecycle.rollups import write_tallies
from robust_queue.lifecycle.tallies import SPANS, Tallies, Tally
from robust_queue.models.rollups import EVERY_QUEUE
from robust_queue.stores.rows import Claim, Failed, Finished, Outcome, Snoozed

from . import clock
from .connections import drop
from .patience import Patience

logger = logging.getLogger("robust_queue")

MINUTE = min(SPANS)
# Of so many that are recorded together each one is asked how long it took.
SAMPLE = 8
# Names of queues, times two at most, that are counted apart before they are entered.
MOST_NEW = 2_000
# Seconds behind the turn of a minute: workers must not all write at once.
LATENESS = (5.0, 10.0)


class HasClaim(Protocol):
    """Whatever tells which claim it is about."""

    @property
    def claim(self) -> Claim: ...


class Counted(Protocol):
    """An attempt that is over, and may never have begun."""

    @property
    def held(self) -> HasClaim: ...
    @property
    def performed(self) -> Performed | None: ...


class Ledger:
    """Counts for one worker, in its main thread."""

    def __init__(self, database: str, identity: UUID) -> None:
        self._database = database
        self._identity = identity
        self._minute = 0
        self._ends = Counter[tuple[str, type[Outcome]]]()
        # Not counters, which take twice as long to be added to one by one.
        self._waits = defaultdict[tuple[str, int], int](int)
        self._runs = defaultdict[tuple[str, int], int](int)
        self._next_asked = 0
        self._tallies = Tallies()
        self._trouble = Patience(first=MINUTE / 4, longest=MINUTE)
        # Never, as long as there is nothing to be written.
        self._due = math.inf

    def add(self, done: Sequence[Counted], recorded: Collection[UUID]) -> None:
        """Count those of them that were recorded."""
        if len(recorded) != len(done):
            done = [each for each in done if each.held.claim.job_id in recorded]
        if not done:
            return
        self._turn_page()
        self._ends.update(
            [
                (each.held.claim.queue_name, each.performed.outcome.__class__)
                for each in done
                if each.performed
            ]
        )
        self._measure(done)

    def write_if_due(self, *, is_last: bool = False) -> None:
        """Write what was counted, if it is time, or if there will be no other time.

        Nothing is sent if nothing was counted. Whatever goes wrong is told and tried
        again later: no job has to suffer for it.
        """
        if clock.now() < self._due and not (is_last and self._due < math.inf):
            return
        self._enter()
        try:
            self._write()
        except Exception as error:
            self._after(error)
        else:
            self._trouble.succeed()
            self._due = math.inf

    def hurry(self) -> None:
        """The next opportunity may be the last."""
        if self._due < math.inf:
            self._due = 0.0

    @property
    def is_written(self) -> bool:
        """Is there nothing left that was counted?"""
        return self._due == math.inf

    # ── Counting ───────────────────────────────────────────────────────────────

    def _turn_page(self) -> None:
        now = time.time()
        if now // MINUTE != self._minute or len(self._ends) > MOST_NEW:
            self._enter()
            self._minute = int(now // MINUTE)
        if self._due == math.inf:
            lateness = random.uniform(*LATENESS)  # noqa: S311
            self._due = clock.now() + MINUTE - now % MINUTE + lateness

    def _measure(self, done: Sequence[Counted]) -> None:
        every = -(-len(done) // SAMPLE)
        # Not always the first: those that run together may have an order.
        self._next_asked = (self._next_asked + 1) % every
        for each in done[self._next_asked :: every]:
            if each.performed:
                self._ask(each, each.performed.outcome, weight=every)

    def _ask(self, each: Counted, outcome: Outcome, *, weight: int) -> None:
        if outcome.__class__ is Snoozed:
            return
        claim, started_at = each.held.claim, outcome.started_at
        run = step_of(outcome.finished_at - started_at)
        self._runs[claim.queue_name, run] += weight
        if claim.attempts == 1:
            since = max(claim.run_after or claim.enqueued_at, claim.enqueued_at)
            self._waits[claim.queue_name, step_of(started_at - since)] += weight

    # ── Writing ────────────────────────────────────────────────────────────────

    def _enter(self) -> None:
        """Enter what is new where its minute belongs."""
        found = defaultdict[str, Tally](Tally)
        for (queue, kind), number in self._ends.items():
            for name in (queue, EVERY_QUEUE):
                found[name].finished += number * issubclass(kind, Finished)
                found[name].failed += number * issubclass(kind, Failed)
        for (queue, step), number in self._waits.items():
            for name in (queue, EVERY_QUEUE):
                found[name].waits[step] += number
        for (queue, step), number in self._runs.items():
            for name in (queue, EVERY_QUEUE):
                found[name].runs[step] += number
        self._tallies.add(self._minute * MINUTE, found)
        for each in (self._ends, self._waits, self._runs):
            each.clear()

    def _write(self) -> None:
        now = time.time()
        self._tallies.forget(now)
        if unwritten := self._tallies.unwritten:
            write_tallies(self._database, self._identity, unwritten)
            self._tallies.note_written(unwritten.keys())
            self._tallies.forget(now)

    def _after(self, error: Exception) -> None:
        if not self._trouble.failures:
            logger.warning(
                "Statistics could not be written: %s",
                error,
                exc_info=not isinstance(error, Error),
            )
        # Half-broken perhaps. Whoever settles next must not be the one to find out.
        drop(self._database)
        self._due = clock.now() + self._trouble.fail()
