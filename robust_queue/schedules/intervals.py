"""Schedules by elapsed time: "every 90 seconds", "every hour", "every 2 weeks".

Their instants are those of ANCHOR plus a multiple of the period, before it and after,
whatever the zone. So every process knows the same ones, and none depends on when the
schedule was declared.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from .refusals import refusal

# A Monday, so that weeks begin with one.
ANCHOR = datetime(2001, 1, 1, tzinfo=UTC)
SHORTEST = timedelta(seconds=1)
LONGEST = timedelta(days=366)

_UNITS = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
}
# More digits than these are more seconds than the longest has.
_FORM = re.compile(
    rf"every (?:([0-9]{{1,8}}) )?({'|'.join(_UNITS)})s?", re.IGNORECASE | re.ASCII
)
_CAUSE = "an interval is from 1 second to 366 days"
_CURE = (
    "Write a whole number of seconds, minutes, hours, days or weeks, such as 'every 90 "
    "seconds' or 'every hour'."
)


@dataclass(frozen=True, slots=True)
class Interval:
    """Instants that are as far from each other as the period is long."""

    period: timedelta

    def __str__(self) -> str:
        unit = next(name for name in _UNITS if not self.period % _UNITS[name])
        number = self.period // _UNITS[unit]
        return f"every {unit}" if number == 1 else f"every {number} {unit}s"

    def next_after(self, moment: datetime, zone: tzinfo) -> datetime:
        """The first instant that is later than the moment."""
        return ANCHOR + (self._periods(moment) + 1) * self.period

    def last_until(self, moment: datetime, zone: tzinfo) -> datetime:
        """The last instant that is not later than the moment."""
        return ANCHOR + self._periods(moment) * self.period

    def count(
        self, *, after: datetime, until: datetime, zone: tzinfo, most: int
    ) -> int:
        """How many instants are later than one moment and not later than the other."""
        return max(self._periods(until) - self._periods(after), 0)

    def in_words(self) -> str:
        """A sentence for people."""
        return str(self).capitalize()

    def _periods(self, moment: datetime) -> int:
        return (moment - ANCHOR) // self.period


def is_interval(text: str) -> bool:
    """Is it meant as an interval, well written or not?"""
    return text.lower().startswith("every")


def read(text: str) -> Interval:
    """The interval of a text; nonsense raises ValueError."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise refusal(text, _CAUSE, cure=_CURE)
    number, unit = match.groups(default="1")
    return lasting(int(number) * _UNITS[unit.lower()], text)


def lasting(period: timedelta, written: object) -> Interval:
    """The interval of this period, if it is one; else ValueError about what is written.

    Instants are whole seconds, so a period has no smaller parts.
    """
    if not SHORTEST <= period <= LONGEST or period.microseconds:
        raise refusal(written, _CAUSE, cure=_CURE)
    return Interval(period)
