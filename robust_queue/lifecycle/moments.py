"""Moments as the project stores them, and as people are told of them."""

from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta

from django.conf import settings
from django.utils import timezone


def as_stored(moment: datetime) -> datetime:
    """A moment as the project stores it, which every database can give back.

    One that is out of reach raises an OverflowError.
    """
    if timezone.is_naive(moment):
        return _within_reach(moment)
    found = _within_reach(moment.astimezone(UTC))
    return found if settings.USE_TZ else timezone.make_naive(found)


def aware(moment: datetime) -> datetime:
    """A moment with its time zone, also where the project stores none."""
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)


def instant(moment: datetime) -> datetime:
    """The instant that a moment of the past stands for, in UTC.

    Without USE_TZ two instants of an autumn night have the same moment. The later one
    is meant, unless it is still to come: so nothing is taken for older than it is.
    """
    if timezone.is_aware(moment):
        return moment.astimezone(UTC)
    local = moment.replace(tzinfo=timezone.get_default_timezone())
    second, first = (local.replace(fold=fold).astimezone(UTC) for fold in (1, 0))
    return second if second <= datetime.now(UTC) else first


def later(until: datetime | timedelta, *, now: datetime) -> datetime:
    """That moment, or so much later, but never in the past."""
    try:
        if isinstance(until, timedelta):
            return max(_within_reach(now + until), now)
        if settings.USE_TZ and timezone.is_naive(until):
            until = timezone.make_aware(until)
        return max(as_stored(until), now)
    except OverflowError as error:
        raise ValueError(f"A moment is out of reach: {until!r}.") from error


def in_future(until: datetime | timedelta) -> datetime:
    """That moment, or so much later than now, as the project stores it.

    What is over, out of reach or ambiguous raises a ValueError.
    """
    now = timezone.now()
    try:
        if isinstance(until, timedelta):
            moment = _within_reach(now + until)
        elif settings.USE_TZ and timezone.is_naive(until):
            raise ValueError(f"A moment without a time zone: {until!r}.")
        else:
            moment = as_stored(until)
    except OverflowError as error:
        raise ValueError(f"A moment is out of reach: {until!r}.") from error
    if moment <= now:
        raise ValueError(f"A moment in the future is needed, got {until!r}.")
    return moment


def by_the_clock(moment: datetime) -> str:
    """A moment by the clocks of whoever looks."""
    local = timezone.localtime(moment) if timezone.is_aware(moment) else moment
    return f"{local:%Y-%m-%d %H:%M:%S %Z}".rstrip()


def _within_reach(moment: datetime) -> datetime:
    # At the ends of the calendar a change of zone would fall off.
    if MINYEAR < moment.year < MAXYEAR:
        return moment
    raise OverflowError
