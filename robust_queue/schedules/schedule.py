"""The schedule itself, whatever its form."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice, takewhile
from typing import TypeAlias

from . import intervals, reading
from .clocks import SECOND
from .daylight import Daylight
from .intervals import Interval
from .refusals import FORMS

Instants: TypeAlias = Daylight | Interval


@dataclass(frozen=True, slots=True, init=False)
class Schedule:
    """A text that says when, or a timedelta that says how often.

    Nonsense raises ValueError. Seconds, if there are six fields, come first, as in most
    crons that have them. Instants are in UTC and whole seconds; moments need a zone of
    their own, the zone beside them is the one whose clock counts.
    """

    text: str
    _instants: Instants = field(repr=False, compare=False)

    def __init__(self, text: str | timedelta) -> None:
        normal, instants = _read(text)
        object.__setattr__(self, "text", normal)
        object.__setattr__(self, "_instants", instants)

    def __str__(self) -> str:
        return self.text

    def next_after(self, moment: datetime, zone: tzinfo) -> datetime:
        """The first instant that is later than the moment.

        OverflowError if the calendar, which ends with the year 9999, has none.
        """
        try:
            return self._instants.next_after(_in_utc(moment), zone)
        except OverflowError:
            message = f"{self.text!r} has no instant after {moment}: the calendar ends."
            raise OverflowError(message) from None

    def upcoming(
        self, moment: datetime, zone: tzinfo, count: int = 5
    ) -> list[datetime]:
        """The first instants that are later than the moment."""
        return list(islice(self._onward(_in_utc(moment), zone), count))

    def latest(
        self, count: int, *, after: datetime, until: datetime, zone: tzinfo
    ) -> list[datetime]:
        """The last instants until a moment, but after another: so many, or fewer.

        They ascend. What lies before them costs nothing.
        """
        backward = self._backward(_in_utc(until), zone)
        later = takewhile(_in_utc(after).__lt__, backward)
        return list(islice(later, count))[::-1]

    def count(
        self, *, after: datetime, until: datetime, zone: tzinfo, most: int = 10_000
    ) -> int | None:
        """How many instants are after a moment, until another; None if too many."""
        number = self._instants.count(
            after=_in_utc(after), until=_in_utc(until), zone=zone, most=most + 1
        )
        return number if number <= most else None

    def in_words(self) -> str:
        """A sentence for people, such as "At 12:00, Monday through Friday"."""
        return self._instants.in_words()

    def _onward(self, moment: datetime, zone: tzinfo) -> Iterator[datetime]:
        with suppress(OverflowError):
            while True:
                moment = self._instants.next_after(moment, zone)
                yield moment

    def _backward(self, moment: datetime, zone: tzinfo) -> Iterator[datetime]:
        with suppress(OverflowError):
            while True:
                instant = self._instants.last_until(moment, zone)
                yield instant
                moment = instant - SECOND


def _read(text: object) -> tuple[str, Instants]:
    if isinstance(text, timedelta):
        interval = intervals.lasting(text, text)
        return str(interval), interval
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is no schedule. {FORMS}")  # noqa: TRY004
    return _read_text(" ".join(text.split()))


def _read_text(text: str) -> tuple[str, Instants]:
    # Two ways to write the same must not look like a change.
    if intervals.is_interval(text):
        interval = intervals.read(text)
        return str(interval), interval
    return text, Daylight(reading.read(text))


def _in_utc(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise ValueError(f"{moment} has no zone, so it is no moment.")
    return moment.astimezone(UTC)
