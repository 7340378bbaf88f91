"""A short chaos run. The long one is tests/long/test_chaos.py."""

import random

from tests.support.chaos import Chaos


def test_workers_and_supervisors_killed_at_random(witnessed, witness):
    Chaos(
        witnessed,
        witness,
        jobs=400,
        seed=random.randrange(2**32),
        limit=90,
        pause=0.5,
        longest=0.12,
    ).run()
