"""Unique keys where a transaction of the caller looks at the past."""

import pytest
from django.db import connection, connections, transaction

from robust_queue.models import Job
from tests.support.threads import in_thread
from tests.testapp.unique_tasks import once

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "mysql", reason="others refuse"),
]


@pytest.fixture
def repeatable_read():
    options = connection.settings_dict["OPTIONS"]
    before = options.get("isolation_level")
    connections["default"].close()
    options["isolation_level"] = "repeatable read"
    yield
    connections["default"].close()
    options["isolation_level"] = before


@pytest.mark.xfail(
    strict=True, reason="Unique keys need READ COMMITTED, as robust_queue.W006 says"
)
def test_a_holder_that_is_younger_than_the_snapshot_is_seen(repeatable_read):
    with transaction.atomic():
        assert Job.objects.count() == 0  # from now on this is what it sees
        first = in_thread(once.enqueue, 1)
        second = once.enqueue(1)
    assert second.id == first.id
    assert Job.objects.count() == 1
