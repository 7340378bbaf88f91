"""The clock of a zone: what it shows when, and when it is turned.

No zone has ever turned its clock twice within three days, nor by more than one day.
"""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Clock:
    """A wall clock in a zone. Instants are in UTC; what it shows has no zone."""

    zone: tzinfo

    def shows(self, instant: datetime) -> datetime:
        """What it shows at an instant."""
        return instant.astimezone(self.zone).replace(tzinfo=None, fold=0)

    def has_shown(self, instant: datetime) -> datetime:
        """The latest time that it has come to: more than it shows, if put back."""
        is_again = instant.astimezone(self.zone).fold
        turned = self.turned(instant, -DAY) if is_again else None
        return self.shows(turned or instant)

    def first_shows(self, wall: datetime) -> datetime:
        """The first instant at which it shows this time, or else leaves it out."""
        instant = self._instant(wall, fold=0)
        if self.shows(instant) == wall:
            return instant
        # By the offset after the turn it would be earlier, by the one before it later.
        early = self._instant(wall, fold=1)
        return self.turned(early, instant - early) or instant

    def turned(self, start: datetime, distance: timedelta) -> datetime | None:
        """The first second with another offset, on the way over a signed distance.

        That is the instant of the turn, or on the way back the last second before it.
        """
        offset, end = self._offset(start), start + distance
        while start != end:
            leg = max(-DAY, min(end - start, DAY))
            if self._offset(start + leg) != offset:
                return self._turn(start, leg)
            start += leg
        return None

    def _turn(self, start: datetime, leg: timedelta) -> datetime:
        offset, step = self._offset(start), SECOND if leg > timedelta(0) else -SECOND
        seconds = bisect_left(
            range(leg // step),
            True,
            key=lambda count: self._offset(start + count * step) != offset,
        )
        return start + seconds * step

    def _offset(self, instant: datetime) -> timedelta | None:
        return instant.astimezone(self.zone).utcoffset()

    def _instant(self, wall: datetime, *, fold: int) -> datetime:
        return wall.replace(tzinfo=self.zone, fold=fold).astimezone(UTC)
