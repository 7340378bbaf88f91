"""Fixtures that every test may ask for."""

import django
import pytest
from django.db import connection

from tests.settings import KIND
from tests.testapp import tasks

pytest_plugins = ["tests.processes.second_chance"]

# What differs between databases is asked on the newest Django, what differs between
# versions of Django on SQLite; only where both may meet is everything asked everywhere.
NEWEST_DJANGO_ONLY = ["stores/test_plans.py"]
ONE_DATABASE_IS_ENOUGH = [
    "admin",
    "doctor",
    "processes/test_lifecycle.py",
    "test_arguments.py",
    "test_checks.py",
    "test_configuration.py",
    "test_configuration_sources.py",
    "test_docs.py",
    "test_policies.py",
    "test_rules.py",
    "test_schedules.py",
]
collect_ignore = []
if django.VERSION < (6, 1):
    collect_ignore += NEWEST_DJANGO_ONLY
    if KIND != "sqlite":
        collect_ignore += ONE_DATABASE_IS_ENOUGH


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
