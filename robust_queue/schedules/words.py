"""Crontabs in words. The one module that knows cron-descriptor."""

import re
from functools import lru_cache

# It would leave out what it cannot say: "mon-fri#2", "1#1,3#2", "1,L".
_BEYOND_WORDS = re.compile("(?=.*[#l])(?=.*[,-])", re.IGNORECASE)


def described(fields: str) -> str:
    """A sentence in English for five or six fields, or else the fields themselves."""
    *_, day, _month, weekday = fields.split()
    if _BEYOND_WORDS.match(day) or _BEYOND_WORDS.match(weekday):
        return fields
    try:
        return _sentence(fields)
    except Exception:
        # Words are an extra; whatever the library lacks, the fields say it all.
        return fields


@lru_cache(maxsize=1024)
def _sentence(fields: str) -> str:
    # Most processes never describe a schedule.
    from cron_descriptor import (  # type: ignore[import-untyped]  # noqa: PLC0415
        ExpressionDescriptor,
        Options,
    )

    options = Options(
        locale_code="en_US",
        use_24hour_time_format=True,
        day_of_week_start_index_zero=True,
    )
    return str(ExpressionDescriptor(fields.upper(), options).get_description())
