"""Settling when something goes wrong with the settling."""

from dataclasses import replace
from uuid import uuid4

import pytest
from django.db import connection

from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.settle import settle
from robust_queue.models import FailedExecution
from tests.support.invariants import states
from tests.testapp.tasks import add

pytestmark = pytest.mark.django_db(transaction=True)


def performed(count):
    results = [add.enqueue(i) for i in range(count)]
    claims = claim("default", process_id=uuid4(), limit=count)
    assert len(results) == len(claims)
    return [perform(c, database="default", worker_id="w").outcome for c in claims]


def test_one_poisoned_result_fails_its_own_job_and_not_the_batch():
    if connection.vendor != "postgresql":
        pytest.skip("only PostgreSQL refuses NUL characters in text")
    good, bad, fine = performed(3)
    poisoned = replace(bad, result='"\0"')
    won = settle("default", [good, poisoned, fine])
    assert won == {good.job_id, bad.job_id, fine.job_id}
    assert sorted(states().values()) == ["failed", "finished", "finished"]
    assert FailedExecution.objects.get().job_id == bad.job_id


def test_a_lost_claim_is_told_in_the_log(caplog):
    (outcome,) = performed(1)
    settle("default", [outcome])
    assert settle("default", [outcome]) == set()
    assert f"Job {outcome.job_id} is no longer this worker's" in caplog.text


def test_a_batch_larger_than_a_statement_may_be():
    """Five results of four megabytes: more than a MariaDB server takes at once."""
    outcomes = [replace(o, result=f'"{"x" * 4_000_000}"') for o in performed(5)]
    assert len(settle("default", outcomes)) == 5
    assert set(states().values()) == {"finished"}
