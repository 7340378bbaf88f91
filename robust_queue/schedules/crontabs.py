"""Which times of a wall clock a crontab names. Here clocks are never turned."""

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, TypeAlias

Way: TypeAlias = Literal[1, -1]
FORWARD: Way = 1
BACKWARD: Way = -1

LAST = -1  # instead of a day's number, or of which weekday of the month it is
DAY = timedelta(days=1)
HOURS_OF_A_DAY = 24
_A_LEAP_YEAR = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Crontab:
    """The numbers that the fields of a crontab stand for.

    A day matches by its number or by its weekday, either is enough. A weekday is a pair
    of 0 to 6, from Sunday, and which one of the month it has to be.
    """

    # Of one of the forms with fields, for people.
    fields: str
    # Ascending, never empty.
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[tuple[int, int]]

    @property
    def has_every_hour(self) -> bool:
        """Does it go by elapsed time rather than by the hours of the day?"""
        return len(self.hours) == HOURS_OF_A_DAY

    @property
    def is_possible(self) -> bool:
        """Does any year have such a day?"""
        if self.weekdays or LAST in self.days:
            return True
        longest = max(monthrange(_A_LEAP_YEAR, month)[1] for month in self.months)
        return min(self.days) <= longest

    def nearest(self, wall: datetime, way: Way) -> datetime:
        """The first matching time on the way from this one, which may be itself.

        OverflowError at the end of the calendar.
        """
        found = self._on_day(wall, way) if self.has_day(wall) else None
        return found or self._from_day(wall.date() + way * DAY, way)

    def has_day(self, day: date) -> bool:
        """Does it name this day?"""
        return day.month in self.months and (
            day.day in self.days or self._has_end(day) or self._has_weekday(day)
        )

    def _has_end(self, day: date) -> bool:
        return LAST in self.days and day.day == _length(day)

    def _has_weekday(self, day: date) -> bool:
        weekday, nth = day.isoweekday() % 7, (day.day + 6) // 7
        return (weekday, nth) in self.weekdays or (
            (weekday, LAST) in self.weekdays and day.day + 7 > _length(day)
        )

    def _on_day(self, wall: datetime, way: Way) -> datetime | None:
        shown = (wall.hour, wall.minute, wall.second)
        found = _nearest(self._times, shown, way)
        return None if found is None else _at(wall, found)

    def _from_day(self, day: date, way: Way) -> datetime:
        while not self.has_day(day):
            if day.month not in self.months:
                day = day.replace(day=_length(day) if way == FORWARD else 1)
            day += way * DAY
        return _at(day, _ends(self._times, way))

    @property
    def _times(self) -> Sequence[tuple[int, ...]]:
        return self.hours, self.minutes, self.seconds


def _at(day: date, numbers: Sequence[int]) -> datetime:
    hour, minute, second = numbers
    return datetime(day.year, day.month, day.day, hour, minute, second)  # noqa: DTZ001


def _length(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _nearest(
    fields: Sequence[tuple[int, ...]], shown: Sequence[int], way: Way
) -> tuple[int, ...] | None:
    """The first combination of the fields' numbers on the way from what is shown."""
    if not fields:
        return ()
    field, *finer = fields
    number, *rest = shown
    if number in field and (found := _nearest(finer, rest, way)) is not None:
        return number, *found
    beyond = _beyond(field, number, way)
    return None if beyond is None else (beyond, *_ends(finer, way))


def _beyond(field: tuple[int, ...], number: int, way: Way) -> int | None:
    if way == FORWARD:
        return next(iter(field[bisect_right(field, number) :]), None)
    return next(reversed(field[: bisect_left(field, number)]), None)


def _ends(fields: Sequence[tuple[int, ...]], way: Way) -> tuple[int, ...]:
    """Where the way begins: the first numbers of all, or the last."""
    return tuple(field[0 if way == FORWARD else -1] for field in fields)
