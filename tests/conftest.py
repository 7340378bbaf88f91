"""Fixtures that every test may ask for."""

import pytest
from django.db import connection

from tests.testapp import tasks


@pytest.fixture
def performed():
    """What the test tasks have noted since the test began."""
    tasks.performed.clear()
    yield tasks.performed
    tasks.performed.clear()


@pytest.fixture
def row_locks(transactional_db):
    """For races between two open transactions, which need locks on rows."""
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("SQLite has one writer at a time: two never meet")
