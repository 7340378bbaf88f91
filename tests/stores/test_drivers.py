"""The same statements under other settings of the driver."""

import pytest
from django.db import connection

from tests.stores import test_contract as contract
from tests.stores import test_contract_of_retries as retries
from tests.stores import test_turns as turns

store = contract.store


@pytest.fixture
def bound_on_the_server(transactional_db):
    if connection.vendor != "postgresql":
        pytest.skip("an option of Django's PostgreSQL backend")
    options = connection.settings_dict["OPTIONS"]
    options["server_side_binding"] = True
    connection.close()
    yield
    del options["server_side_binding"]
    connection.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("bound_on_the_server")
class TestParametersBoundOnTheServer(
    contract.TestInsert,
    contract.TestClaim,
    contract.TestSettle,
    contract.TestRelease,
    contract.TestDispatch,
    retries.TestSettlingForAnotherAttempt,
    retries.TestRetry,
):
    """PostgreSQL then plans without the values, and must know every type."""


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("bound_on_the_server")
class TestTurnsBoundOnTheServer(
    turns.TestPartitions,
    turns.TestWithoutPartition,
    turns.TestPauses,
    turns.TestPatterns,
):
    """The same where partitions take turns."""
