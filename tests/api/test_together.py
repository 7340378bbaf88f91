"""Workers in Python and in Node, and one of our own, do their jobs together.

With many more of everything: tests/long/test_external_workers.py.
"""

import shutil

import pytest

from tests.support.outside import outside_tasks
from tests.support.together import Together
from tests.support.witness import Witness

__all__ = ["outside_tasks"]


@pytest.mark.skipif(not shutil.which("node"), reason="Node is missing")
def test_none_is_lost_or_done_twice(transactional_db, outside_tasks, tmp_path):
    plan = {
        "jobs": 400,
        "seed": 10,
        "outside": ("python", "node"),
        "natives": 1,
        "keys": 3,
        "kills": 1,
        "pause": 1.5,
        "longest": 0.05,
        "limit": 60,
    }
    verdict = Together(tmp_path, Witness(tmp_path), outside_tasks, **plan).run()
    assert len(verdict.deaths) == 1
    # As many as may, so that more would have been seen.
    assert max(verdict.at_once.values()) == outside_tasks.LIMIT
    assert set(verdict.by) == {"python", "node", "native"}
