"""20,000 tasks while workers, and now and then a supervisor, are killed at random.

`make test-long` runs it on the three databases, on SQLite with fewer tasks. None may be
lost, none finished twice, and none run twice unless a kill interrupted it. The figures
are printed, with the seed: `make test-long ARGS=-s` shows them.

    RQ_CHAOS_JOBS=20000     how many tasks
    RQ_CHAOS_SEED=…         the seed of a run to be repeated, as far as chance allows
    RQ_CHAOS_SECONDS=1800   how long it may take
    RQ_CHAOS_PAUSE=0.5      seconds between two blows, on average
"""

import os
import random

import pytest

from robust_queue.lifecycle import recount
from robust_queue.models import BlockedExecution
from tests.settings import KIND
from tests.support.chaos import Chaos
from tests.testapp.limited_tasks import limited


def told(name, default):
    return os.environ.get(f"RQ_CHAOS_{name}") or default


JOBS = int(told("JOBS", 5_000 if KIND == "sqlite" else 20_000))
SECONDS = float(told("SECONDS", 1800))


def run(witnessed, witness, **plan):
    plan = {
        "jobs": JOBS,
        "seed": int(told("SEED", random.randrange(2**32))),
        "limit": SECONDS,
        "pause": float(told("PAUSE", 0.5)),
        "longest": 0.01,
        **plan,
    }
    Chaos(witnessed, witness, **plan).run()


@pytest.mark.timeout(SECONDS + 300)
def test_chaos(witnessed, witness):
    run(witnessed, witness)


@pytest.mark.timeout(SECONDS + 300)
def test_never_more_than_the_limit_run(witnessed, witness):
    run(witnessed, witness, call=limited, sleeps=False)
    assert recount.miscounted("default") == []
    assert not BlockedExecution.objects.exists()
