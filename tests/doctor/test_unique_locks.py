"""The deep examination of unique keys."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from tests.support import rows
from tests.support.findings import only

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def test_locks_that_are_left_over_are_named(ask):
    gone = rows.unique_lock(job_id=uuid4())
    ended = rows.unique_lock(job_id=rows.finished().pk)
    expired = rows.unique_lock(expires_at=timezone.now() - HOUR)
    severity, offenders = only(ask(deep=True), "left over")
    assert severity == "warning"
    found = sorted([gone, ended, expired], key=lambda lock: lock.key)
    assert offenders == tuple(
        f"{each.key}, held by job {each.job_id}" for each in found
    )


@pytest.mark.parametrize("state", ["scheduled", "ready", "blocked"])
def test_locks_of_pending_jobs_are_in_order(ask, state):
    rows.unique_lock(job_id=getattr(rows, state)().pk)
    rows.unique_lock(expires_at=timezone.now() + HOUR)
    assert not any("left over" in text for text in ask(deep=True))
