"""The clock of trust and patience: it never steps back, and it counts sleep.

A suspended machine must find, when it wakes, that its trust has run out. The usual
monotonic clock stands still meanwhile.
"""

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Seconds since some moment in the past, the same for all processes of a host."""
    return time.clock_gettime(_CLOCK)
