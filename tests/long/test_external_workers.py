"""10,000 jobs for four workers outside and two of our own, while those outside are
killed every few seconds and replaced.

None may be lost, none settled twice, none run twice unless a kill interrupted it, and
never more of a key may run than its limit, whoever runs them. `make test-long` runs it
on the three databases, on SQLite with fewer jobs. The figures are printed, with the
seed: `make test-long ARGS=-s` shows them.

    RQ_OUTSIDE_JOBS=10000   how many jobs
    RQ_OUTSIDE_SEED=…       the seed of a run to be repeated, as far as chance allows
    RQ_OUTSIDE_PAUSE=4      seconds between two kills, fewer on SQLite
"""

import os
import random
import shutil

import pytest

from tests.settings import KIND
from tests.support.outside import outside_tasks
from tests.support.together import Together

__all__ = ["outside_tasks"]

SECONDS = 1200


def told(name, default):
    return os.environ.get(f"RQ_OUTSIDE_{name}") or default


@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.skipif(not shutil.which("node"), reason="Node is missing")
def test_none_is_lost_or_done_twice(transactional_db, outside_tasks, witness, tmp_path):
    plan = {
        "jobs": int(told("JOBS", 2_000 if KIND == "sqlite" else 10_000)),
        "seed": int(told("SEED", random.randrange(2**32))),
        "outside": ("python", "python", "node", "node"),
        "natives": 2,
        "keys": 10,
        "kills": None,
        "pause": float(told("PAUSE", 0.5 if KIND == "sqlite" else 4)),
        "longest": 0.02,
        "limit": SECONDS,
    }
    verdict = Together(tmp_path, witness, outside_tasks, **plan).run()
    assert set(verdict.by) == {"python", "node", "native"}
    assert verdict.repeated
