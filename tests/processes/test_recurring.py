"""Real schedulers that are killed, stopped and misled about the time, for some seconds.

The long run is tests/long/test_recurring.py.
"""

import random
from datetime import timedelta

from tests.support.recurring_chaos import RecurringChaos
from tests.support.timetables import TURN, timetable


def test_every_instant_is_told_once(supervised, tmp_path):
    figures = RecurringChaos(
        supervised,
        tmp_path,
        lines=timetable(every=9),
        hosts=2,
        seed=random.randrange(2**32),
        begin=TURN - timedelta(minutes=3),
        seconds=6,
        rate=60,
        blows={
            "kill_scheduler": 3,
            "kill_host": 1,
            "stop_scheduler": 1,
            "step_back": 1,
            "step_forward": 1,
        },
        pause=0.6,
        edits=2,
        longest_sleep=1.0,
    ).run()
    assert figures["instants"] > 300
