"""Every turn of a clock from 1990 to 2040, in every zone: schedules know what is due.

Around each turn some crontabs, made up at random, are compared with an oracle that
walks through the time minute by minute. Zones whose clocks are turned alike count once.
The figures are printed: `make test-long ARGS=-s`.

    RQ_DAYLIGHT_CRONTABS=2   how many for each turn
"""

import os
import random
import time
from zoneinfo import available_timezones

import pytest

from robust_queue.schedules import Schedule
from tests.schedules.patterns import pattern
from tests.settings import KIND
from tests.support.daylight import Walk, compare, turns_of_zones

CRONTABS = int(os.environ.get("RQ_DAYLIGHT_CRONTABS") or 2)


@pytest.mark.skipif(
    KIND != "sqlite", reason="schedules know no database: once is enough"
)
def test_every_turn_of_every_clock():
    begun, chance, instants = time.monotonic(), random.Random(), 0
    turns = [turn for turns in turns_of_zones() for turn in turns]
    for turn in turns:
        walk = Walk.around(turn)
        instants += sum(_agreed(walk, chance) for _ in range(CRONTABS))
    print(  # noqa: T201
        f"\ndaylight: {len(available_timezones())} zones, of which "
        f"{len(turns_of_zones())} turn their clocks differently, {len(turns):,} times; "
        f"{CRONTABS * len(turns):,} crontabs, {instants:,} instants, "
        f"{time.monotonic() - begun:.0f} s"
    )
    assert instants > len(turns)


def _agreed(walk, chance):
    one = pattern(chance, walk.walls)
    return compare(Schedule(one.text), one, walk, chance)
