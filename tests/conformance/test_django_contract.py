"""Django's own tests of tasks pass on Robust Queue, one item here for each of them."""

import django
import pytest

from tests.conformance import contract, departures, names
from tests.conformance.recording import PASSED
from tests.conformance.rewriting import RewriteError
from tests.conformance.sdist import FetchError

# The first test that runs may fetch Django's source distribution before.
pytestmark = pytest.mark.timeout(600)

# Of the 76 tests that concern the backend; those of custom backends come on top.
LEAST = 65 if django.VERSION >= (6, 1) else 60


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What became of Django's tests, which run once for all tests here."""
    try:
        return contract.run(tmp_path_factory.mktemp("contract"))
    except (FetchError, RewriteError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


@pytest.mark.parametrize("name", departures.EXPECTED)
def test_passes(report, name):
    outcome = report.outcome(name)
    if outcome != PASSED:
        pytest.fail(outcome, pytrace=False)


def test_django_has_the_tests_that_are_pinned_and_no_others(report):
    assert sorted(report.found) == sorted(names.ALL), report.output


def test_what_is_left_out_would_fail(report):
    passing = {name for name in departures.LEFT_OUT if report.outcome(name) == PASSED}
    assert not passing, "The table leaves out more than it needs to."


def test_every_departure_names_a_test_of_django():
    named = {test for departure in departures.TABLE for test in departure.tests}
    assert named <= set(names.ALL)


def test_nearly_all_tests_run_as_django_wrote_them(report):
    as_written = set(departures.EXPECTED) - departures.ADAPTED
    passed = {name for name in as_written if report.outcome(name) == PASSED}
    of_backend = {name for name in passed if not name.startswith("Custom")}
    assert len(of_backend) >= LEAST
