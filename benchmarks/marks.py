"""The work that every system does, and the marks it leaves.

A task writes sixteen bytes: the number it was given, and the time. Every rate and every
latency is computed from these, whichever system ran the task. The clock is the
machine's monotonic one, which all its processes share.
"""

import os
import struct
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

_RECORD = struct.Struct("<qd")


class Mark(NamedTuple):
    """One task that ran: the number it was given, and when."""

    number: int
    time: float


def mark(number: int) -> None:
    """Do the work: note that the task with this number has run."""
    os.write(_file(os.environ["BENCH_MARKS"]), _RECORD.pack(number, time.monotonic()))


def read(path: Path) -> list[Mark]:
    """Return what was noted so far, in the order of time."""
    return sorted(map(Mark._make, _RECORD.iter_unpack(_whole(path))), key=_time)


def count(path: Path) -> int:
    """Return how many tasks have run so far."""
    return path.stat().st_size // _RECORD.size if path.exists() else 0


def _whole(path: Path) -> bytes:
    noted = path.read_bytes() if path.exists() else b""
    return noted[: len(noted) // _RECORD.size * _RECORD.size]


def _time(noted: Mark) -> float:
    return noted.time


@cache
def _file(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
