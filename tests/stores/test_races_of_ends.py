"""Who ends an attempt, and who tries again: of two at the same time, one does."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from robust_queue.lifecycle import recover
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.failure import failed_to_record
from robust_queue.lifecycle.retry import retry
from robust_queue.lifecycle.settle import settle
from robust_queue.models import Attempt, FailedExecution
from tests.support.invariants import state_of
from tests.support.outcomes import success
from tests.support.processes import a_process
from tests.support.threads import in_threads
from tests.testapp.tasks import note

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 15


def taken():
    result, process = note.enqueue(), a_process()
    (claimed,) = claim("default", process_id=process)
    return result, process, claimed


def failure(claimed, *, retry_at=None):
    outcome = failed_to_record(success(claimed), ValueError("boom"))
    return replace(outcome, retry_at=retry_at)


def test_a_timeout_and_a_finish_have_one_winner():
    """The supervisor takes the worker for stuck, which ends at that very moment."""
    for _ in range(ROUNDS):
        result, process, claimed = taken()
        claims = recover.claims_of("default", process)
        outcome = success(claimed)
        timed_out, finished = in_threads(
            [
                lambda claims=claims: recover.time_out(
                    "default", claims, worker_id="worker"
                ),
                lambda outcome=outcome: settle("default", [outcome]),
            ]
        )
        assert len(timed_out) + len(finished) == 1
        if finished:
            assert state_of(result) == "finished"
        else:
            assert state_of(result) == "failed"
            assert FailedExecution.objects.get(pk=result.id).kind == "timed_out"


def test_an_operator_does_not_retry_what_the_policy_does():
    """Whoever is first: the job waits once, and its failure is kept once."""
    later = timezone.now() + timedelta(hours=1)
    for _ in range(ROUNDS):
        result, _, claimed = taken()
        outcome = failure(claimed, retry_at=later)
        retried, settled = in_threads(
            [
                lambda result=result: retry("default", result.id),
                lambda outcome=outcome: settle("default", [outcome]),
            ]
        )
        assert (retried, len(settled)) == (False, 1)
        assert state_of(result) == "scheduled"
        assert Attempt.objects.filter(job_id=result.id).count() == 1


def test_an_operator_retries_a_failure_once_it_is_there():
    for _ in range(ROUNDS):
        result, _, claimed = taken()
        outcome = failure(claimed)
        retried, settled = in_threads(
            [
                lambda result=result: retry("default", result.id),
                lambda outcome=outcome: settle("default", [outcome]),
            ]
        )
        assert len(settled) == 1
        assert state_of(result) == ("ready" if retried else "failed")
        assert Attempt.objects.filter(job_id=result.id).count() == int(retried)
        # Out of the way of the next round.
        claim("default", process_id=a_process())
