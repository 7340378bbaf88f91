"""Fixtures for tests with real processes."""

from contextlib import ExitStack

import django
import pytest

from tests import settings
from tests.server_process import ServiceError
from tests.support.own_server import own_server
from tests.support.pgbouncer import pgbouncer
from tests.support.supervisors import Supervised
from tests.support.witness import Witness

# What these ask does not depend on the version of Django, and takes long. The others
# run everywhere.
NEWEST_ONLY = [
    "test_async_mode.py",
    "test_cancellation.py",
    "test_chaos.py",
    "test_commands.py",
    "test_coroutines.py",
    "test_crashes.py",
    "test_database_trouble.py",
    "test_deploys.py",
    "test_embedding.py",
    "test_errands.py",
    "test_hooks.py",
    "test_isolation_of_workers.py",
    "test_options.py",
    "test_output.py",
    "test_pauses.py",
    "test_queues_order.py",
    "test_quiet.py",
    "test_rates.py",
    "test_recurring.py",
    "test_recurring_changes.py",
    "test_recycling.py",
    "test_reload.py",
    "test_support.py",
    "test_timeouts.py",
    "test_titles.py",
    "test_tuning.py",
    "test_wakeup.py",
]
# Nor does what these ask depend on the server, of whose statements the contract tells.
# Two kinds of databases are enough: one that notifies, and one that does not.
NOT_ON_MARIADB = [
    "test_async_mode.py",
    "test_commands.py",
    "test_coroutines.py",
    "test_embedding.py",
    "test_hooks.py",
    "test_isolation.py",
    "test_quiet.py",
    "test_recurring_changes.py",
    "test_timeouts.py",
    "test_tuning.py",
]
# These would hardly notice if there were none.
ON_SQLITE_ONLY = [
    "test_options.py",
    "test_output.py",
    "test_reload.py",
    "test_support.py",
    "test_titles.py",
]

collect_ignore = [
    *(NEWEST_ONLY if django.VERSION < (6, 1) else []),
    *(NOT_ON_MARIADB if settings.KIND == "mariadb" else []),
    *(ON_SQLITE_ONLY if settings.KIND != "sqlite" else []),
]


@pytest.fixture
def supervised(transactional_db, tmp_path):
    """Starts supervisors; whatever is left of them ends with the test."""
    started = []

    def start(*arguments, **options):
        each = Supervised(tmp_path, *arguments, **options)
        started.append(each)
        return each.start()

    yield start
    for each in started:
        each.clean_up()


@pytest.fixture
def witness(tmp_path):
    """Reads what tasks tell in a file."""
    return Witness(tmp_path)


@pytest.fixture
def witnessed(supervised, witness):
    """Starts supervisors whose tasks tell in a file what they do."""

    def start(*arguments, **options):
        given = {"environment": witness.environment, **witness.options, **options}
        return supervised(*arguments, **given)

    return start


@pytest.fixture(scope="module")
def server_of_module():
    if settings.KIND == "sqlite":
        pytest.skip("SQLite has no server")
    try:
        with own_server(settings.KIND) as server:
            yield server
    except ServiceError as error:
        pytest.skip(str(error))


@pytest.fixture
def server(transactional_db, server_of_module):
    """A server that the test may stop; the default database is on it meanwhile."""
    with server_of_module.as_default():
        yield server_of_module


@pytest.fixture
def pooler(transactional_db):
    """Starts PgBouncer in front of the default database; it ends with the test."""
    if settings.KIND != "postgresql":
        pytest.skip("PgBouncer is for PostgreSQL only")
    with ExitStack() as started:

        def start(mode="transaction"):
            try:
                return started.enter_context(pgbouncer(mode))
            except ServiceError as error:
                pytest.skip(str(error))

        yield start
