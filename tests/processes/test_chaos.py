"""A short chaos run. The long one is tests/long/test_chaos.py."""

import random

from robust_queue.lifecycle import recount
from robust_queue.models import BlockedExecution
from tests.support.chaos import Chaos
from tests.testapp.limited_tasks import limited


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


def test_never_more_than_the_limit_run_whoever_is_killed(witnessed, witness):
    Chaos(
        witnessed,
        witness,
        jobs=400,
        seed=random.randrange(2**32),
        limit=90,
        pause=0.5,
        longest=0.12,
        call=limited,
        sleeps=False,
    ).run()
    assert recount.miscounted("default") == []
    assert not BlockedExecution.objects.exists()
