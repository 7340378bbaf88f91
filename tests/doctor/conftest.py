"""Queues to be examined."""

import pytest

from robust_queue.doctor import activity, examine
from tests.support import rows


@pytest.fixture
def crew():
    """Everyone who has to be alive."""
    return {kind: rows.process(kind) for kind in activity.MISSED}


@pytest.fixture
def ask(crew):
    """What the doctor says beyond "nobody is there": severity and rows by text."""

    def examined(*, deep=False):
        found = examine("default", deep=deep)
        return {each.text: (each.severity, each.rows) for each in found}

    return examined
