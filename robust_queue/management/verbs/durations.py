"""Durations as operators write them: ``90``, ``45s``, ``30m``, ``12h``, ``7d``."""

import re
from argparse import ArgumentTypeError
from datetime import timedelta

from robust_queue.backoffs import LONGEST_DELAY

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_PART = r"(\d+(?:\.\d+)?)([smhdw])"


def duration(text: str) -> timedelta:
    """Read a duration; a bare number is one of seconds. For argparse."""
    written = f"{text}s" if text[-1:].isdigit() else text
    if not re.fullmatch(f"(?:{_PART})+", written, re.ASCII):
        raise ArgumentTypeError(_refusal(text))
    parts = re.findall(_PART, written, re.ASCII)
    try:
        found = sum(
            (timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts),
            timedelta(0),
        )
    except OverflowError:
        found = timedelta.max
    if found > LONGEST_DELAY:
        raise ArgumentTypeError(f"{text!r} is out of reach.")
    return found


def _refusal(text: str) -> str:
    return f"{text!r} is no duration: write 90, 45s, 30m, 12h, 7d, 2w or 1d12h."
