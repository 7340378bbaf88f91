"""Fixtures that every test may ask for."""

import django
import pytest
from django.db import connection
from django.test import TransactionTestCase
from hypothesis import Phase
from hypothesis import settings as examples

from tests.settings import KIND
from tests.support.emptying import empty
from tests.testapp import tasks

pytest_plugins = ["tests.processes.second_chance"]

TransactionTestCase._fixture_teardown = empty

# To explain a failure it traces every line. On Python 3.11 that never ends where some
# test has left an exception to a thread that sleeps.
_phases = [phase for phase in Phase if phase is not Phase.explain]
examples.register_profile("unexplained", phases=_phases)
examples.load_profile("unexplained")

# Pages and findings differ with Django or with the database, never with both at once;
# so do real processes. Everything else is asked everywhere.
ONE_DATABASE_IS_ENOUGH = ["admin", "api", "doctor", "processes/test_lifecycle.py"]
is_older = django.VERSION < (6, 1)
# Clocks are turned without any database, and examples are run on the simplest one. So
# is the matrix of who may do what: whatever it does is done in other tests.
NO_DATABASE_IS_NEEDED = [
    "admin/test_permissions.py",
    "api/test_permissions.py",
    "api/test_reference.py",
    "schedules",
    "test_docs.py",
]
# What a browser shows depends on neither; see ``Cell.has_browser`` in ``.ci/cells.py``.
ONE_CELL_IS_ENOUGH = ["browser"]
# Statements are the same whatever the Django; their plans are the server's affair. The
# matrices ask our own code, of each of hundreds of pages and operations.
NEWEST_IS_ENOUGH = [
    "admin/test_permissions.py",
    "api/test_permissions.py",
    "stores/test_clearing_plans.py",
    "stores/test_plans.py",
    "stores/test_plans_of_slots.py",
    "stores/test_plans_of_unique.py",
    "stores/test_turns_plans.py",
]
# Programs and servers at both ends of a line: one database behind them is enough. That
# is the one whose tests are over first.
ONE_SERVER_IS_ENOUGH = [
    "api/test_client.py",
    "api/test_node_worker.py",
    "api/test_together.py",
]
# What is woken by notifications; and what is strictest about texts and numbers.
POSTGRESQL_IS_ENOUGH = [
    "api/test_fuzz.py",
    "api/test_waiting.py",
]
collect_ignore = [
    *(ONE_DATABASE_IS_ENOUGH if is_older and KIND != "sqlite" else []),
    *(NO_DATABASE_IS_NEEDED if KIND != "sqlite" else []),
    *(ONE_CELL_IS_ENOUGH if is_older or KIND != "sqlite" else []),
    *(NEWEST_IS_ENOUGH if is_older else []),
    *(ONE_SERVER_IS_ENOUGH if is_older or KIND != "mariadb" else []),
    *(POSTGRESQL_IS_ENOUGH if is_older or KIND != "postgresql" else []),
]


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
