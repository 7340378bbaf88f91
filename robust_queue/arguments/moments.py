"""Dates, times and durations ⇄ tags.

The text of a moment has its offset from UTC, for people to read; a named time zone is
kept beside it and wins when the moment is read back.
"""

import re
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from typing import TypeVar
from zoneinfo import ZoneInfo

from django.conf import settings

from robust_queue.arguments.misfits import MisfitError, named
from robust_queue.arguments.text import TAG, Json, Tag

_MICROSECOND = timedelta(microseconds=1)
_ZONE_KEY = re.compile(r"[\w+-]+(/[\w+-]+)*", re.ASCII)

Moment = TypeVar("Moment", datetime, time)


def encode_datetime(value: datetime, room: int) -> Json:
    if value.tzinfo is None:
        _refuse_if_zones_are_used()
    return {TAG: "datetime", "value": value.isoformat(), **_place_of(value)}


def encode_kin_of_datetime(value: datetime, room: int) -> Json:
    """A subclass, such as that of a frozen clock, if it says no more than its base."""
    moment = datetime(
        value.year,
        value.month,
        value.day,
        value.hour,
        value.minute,
        value.second,
        value.microsecond,
        value.tzinfo,
        fold=value.fold,
    )
    if moment == value:
        return encode_datetime(moment, room)
    raise MisfitError(f"Unsupported type: {type(value)}. Pass a plain datetime.")


def _refuse_if_zones_are_used() -> None:
    """A naive datetime is another moment on every host: Django's contract says no."""
    if settings.configured and settings.USE_TZ:
        raise MisfitError(
            f"a moment without a time zone. Unsupported type: {datetime} without "
            "tzinfo. Pass an aware one, such as django.utils.timezone.now()."
        )


def decode_datetime(tag: Tag) -> datetime:
    return _placed(datetime.fromisoformat(tag["value"]), tag)


def encode_time(value: time, room: int) -> Json:
    return {TAG: "time", "value": value.isoformat(), **_place_of(value)}


def decode_time(tag: Tag) -> time:
    return _placed(time.fromisoformat(tag["value"]), tag)


def encode_date(value: date, room: int) -> Json:
    return {TAG: "date", "value": value.isoformat()}


def decode_date(tag: Tag) -> date:
    return date.fromisoformat(tag["value"])


def encode_timedelta(value: timedelta, room: int) -> Json:
    return {
        TAG: "timedelta",
        "days": value.days,
        "seconds": value.seconds,
        "microseconds": value.microseconds,
    }


def decode_timedelta(tag: Tag) -> timedelta:
    return timedelta(tag["days"], tag["seconds"], tag["microseconds"])


def _place_of(moment: datetime | time) -> dict[str, Json]:
    zone = _zone_of(moment.tzinfo)
    return zone | {"fold": 1} if moment.fold else zone


def _zone_of(zone: tzinfo | None) -> dict[str, Json]:
    if zone is None:
        return {}
    if type(zone) is timezone:
        return _fixed(zone)
    if type(zone) is ZoneInfo and _ZONE_KEY.fullmatch(zone.key or ""):
        return {"zone": zone.key}
    raise MisfitError(
        f"its time zone cannot be stored. Unsupported type: {type(zone)}. "
        "Use datetime.timezone or zoneinfo.ZoneInfo(name)."
    )


def _fixed(zone: timezone) -> dict[str, Json]:
    offset, name = zone.utcoffset(None), zone.tzname(None)
    details: dict[str, Json] = {}
    if name != timezone(offset).tzname(None):
        details["name"] = name
    # fromisoformat() takes "+00:00:00.000001" for UTC.
    if offset.microseconds:
        details["offset"] = offset // _MICROSECOND
    return details


def _placed(moment: Moment, tag: Tag) -> Moment:
    zone = moment.tzinfo
    if "zone" in tag:
        zone = _zone(tag["zone"])
    elif "offset" in tag or "name" in tag:
        zone = _fixed_zone(moment, tag)
    return moment.replace(tzinfo=zone, fold=tag.get("fold", 0))


def _fixed_zone(moment: datetime | time, tag: Tag) -> timezone:
    offset = moment.utcoffset()
    if offset is None or "offset" in tag:
        offset = tag["offset"] * _MICROSECOND
    return timezone(offset, tag["name"]) if "name" in tag else timezone(offset)


def _zone(key: str) -> ZoneInfo:
    # Only names: zoneinfo looks for them in files and in the tzdata package.
    if not _ZONE_KEY.fullmatch(key):
        raise ValueError(f"{key!r} is not the name of a time zone.")
    try:
        return ZoneInfo(key)
    except (LookupError, ValueError, OSError) as cause:
        raise MisfitError(
            f"the time zone {named(key)} is not known here. Install or update tzdata."
        ) from cause
