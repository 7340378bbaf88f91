"""Time zones by their names, which people write and may write wrong."""

from difflib import get_close_matches
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_EXAMPLE = "Write a name of the IANA database, such as 'Europe/Berlin'."
# No name is half as long, and looking for similar ones takes time.
_LONGEST = 64


def zone_named(name: str) -> ZoneInfo:
    """The zone of this name, such as "Europe/Berlin"; ValueError if there is none."""
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is no time zone. {_EXAMPLE}")  # noqa: TRY004
    # A name is part of a path: none but the known ones are looked for.
    if name not in _known():
        short = name[:_LONGEST]
        raise ValueError(f"{short!r} is no time zone. {_hint(short)}")
    return ZoneInfo(name)


@cache
def _known() -> frozenset[str]:
    return frozenset(available_timezones())


def _hint(name: str) -> str:
    similar = get_close_matches(name, _known())
    if not similar:
        return _EXAMPLE
    return f"Did you mean {' or '.join(map(repr, similar))}?"
