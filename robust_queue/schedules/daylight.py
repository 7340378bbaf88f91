"""From the times of a crontab to instants, also when clocks are turned. The rules:

1.  A crontab names times of the wall clock in its zone. If its hours are all hours
    ("*", "*/1", "0-23"), it goes by elapsed time: each instant counts at which the
    clock shows such a time. In an hour that is repeated it counts twice, and in one
    that is left out there is nothing to count.
2.  Otherwise each such time counts once. If the clock shows it twice, the first time
    counts. If the clock leaves it out, because it is put forward, the instant counts
    at which that happens: once, however many times are left out, and also if the
    first time that is shown thereafter is one as well.
3.  Intervals are elapsed time from a fixed instant on, whatever the zone. They are
    found in ``intervals``.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from . import words
from .clocks import DAY, SECOND, Clock
from .crontabs import BACKWARD, FORWARD, Crontab, Way

# Beyond it a turn of the clock brings back nothing that it shows now.
_NEAR = 3 * DAY


@dataclass(frozen=True, slots=True)
class Daylight:
    """The instants of a crontab, in whole seconds."""

    crontab: Crontab

    def next_after(self, moment: datetime, zone: tzinfo) -> datetime:
        """The first instant that is later than the moment."""
        second, clock = moment.replace(microsecond=0), Clock(zone)
        if self.crontab.has_every_hour:
            return self._by_elapsed_time(second + SECOND, clock, FORWARD)
        ahead = clock.has_shown(second) + SECOND
        return clock.first_shows(self.crontab.nearest(ahead, FORWARD))

    def last_until(self, moment: datetime, zone: tzinfo) -> datetime:
        """The last instant that is not later than the moment."""
        second, clock = moment.replace(microsecond=0), Clock(zone)
        if self.crontab.has_every_hour:
            return self._by_elapsed_time(second, clock, BACKWARD)
        shown = clock.has_shown(second)
        return clock.first_shows(self.crontab.nearest(shown, BACKWARD))

    def count(
        self, *, after: datetime, until: datetime, zone: tzinfo, most: int
    ) -> int:
        """How many instants are later than one moment and not later than the other.

        Counts no further than it is told to.
        """
        number = 0
        with suppress(OverflowError):
            while number < most and (after := self.next_after(after, zone)) <= until:
                number += 1
        return number

    def in_words(self) -> str:
        """A sentence for people, or the text if there is none."""
        return words.described(self.crontab.fields)

    def _by_elapsed_time(self, start: datetime, clock: Clock, way: Way) -> datetime:
        while True:
            distance = self._distance(start, clock, way)
            near = max(-_NEAR, min(distance, _NEAR))
            turned = clock.turned(start, near)
            if turned is None and near == distance:
                return start + distance
            # Not all the way: it may have been turned in between, by up to a day.
            start = turned or start + distance - way * 2 * DAY

    def _distance(self, start: datetime, clock: Clock, way: Way) -> timedelta:
        wall = clock.shows(start)
        return self.crontab.nearest(wall, way) - wall
