"""The clearing that goes on for as long as a process lives, and what it remembers.

What stays was looked at once. From then on a sweep begins where the one before it came
to, so that a year of jobs that are kept costs nothing each minute.
"""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.utils import timezone

from . import operations
from .clear import Batch, walk
from .history import complete_history
from .instants import Instants
from .keep import Rule, rules
from .rollups import forget_old

logger = logging.getLogger("robust_queue")

# An outcome is written down a little after the moment that it names, by the clock of
# another host. So recent a past is not looked at yet: it may not be complete.
LATENESS = timedelta(minutes=2)
# Now and then everything is looked at again: an outcome that could not be written down
# for hours is older than what was looked at last.
MEMORY = timedelta(days=1)


class Sweeps:
    """Clears what is old enough in one database, again and again."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._instants = Instants(database)
        # From when on there is something to be looked at, by rule.
        self._marks: dict[Rule, datetime] = {}
        self._begun: datetime | None = None

    def sweep(self) -> Iterator[None]:
        """Clear what is old enough by now, a short step at a time."""
        now = timezone.now()
        self._forget_in_time(now)
        yield from complete_history(self._database)
        cleared = 0
        for rule in rules(self._database):
            for batch in self._walk(rule, now):
                cleared += len(batch.cleared)
                yield
        yield from self._instants.forget(now)
        yield from forget_old(self._database, now)
        if cleared:
            logger.info("Cleared %s jobs that had ended.", f"{cleared:,}")

    def _walk(self, rule: Rule, now: datetime) -> Iterator[Batch]:
        before, missed = min(rule.before(now), now - LATENESS), None
        since = self._marks.get(rule)
        for batch in walk(
            self._database, rule.state, rule.covers, before=before, since=since
        ):
            if batch.missed and missed is None:
                # Whoever has it now may yet give it up.
                missed = batch.missed[0].finished_at
            self._marks[rule] = missed or batch.walked[-1].finished_at
            yield batch
            if len(batch.missed) == len(batch.walked):
                # Somebody else is at it, a step ahead. It is left to them this time.
                return
        self._marks[rule] = missed or before

    def _forget_in_time(self, now: datetime) -> None:
        if self._begun is None or not self._begun <= now < self._begun + MEMORY:
            self._begun = now
            self._marks.clear()
            self._instants.start_over()
            # There are few, and nobody minds if they stay for a day longer.
            operations.forget(self._database, now)
