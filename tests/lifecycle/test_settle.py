"""Settling when something goes wrong with the settling."""

from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import OperationalError, connection, connections

from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.failure import failed_to_record
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.retry import retry
from robust_queue.lifecycle.settle import settle
from robust_queue.models import Attempt, FailedExecution
from robust_queue.stores import store_for
from robust_queue.testing import drain
from tests.support.invariants import states
from tests.support.processes import a_process
from tests.support.statements import statements
from tests.testapp.tasks import add

pytestmark = pytest.mark.django_db(transaction=True)

MOMENT = timedelta(microseconds=1)


def performed(count):
    results = [add.enqueue(i) for i in range(count)]
    claims = claim("default", process_id=a_process(), limit=count)
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
    for late in (
        replace(outcome, worker_id="another"),
        replace(outcome, attempts=2),
        replace(outcome, finished_at=outcome.finished_at + MOMENT),
    ):
        caplog.clear()
        assert settle("default", [late]) == set()
        assert f"Job {outcome.job_id} is no longer this worker's" in caplog.text


def failed(outcome, **changes):
    return replace(failed_to_record(outcome, ValueError("boom")), **changes)


class TestLostReplies:
    """Whoever has not heard the answer settles again, and is told what is true."""

    KINDS = {
        "finished": lambda outcome: outcome,
        "dropped": lambda outcome: replace(outcome, keep=False),
        "failed": failed,
        "scheduled": lambda outcome: failed(
            outcome, retry_at=outcome.finished_at + MOMENT
        ),
    }

    @pytest.mark.parametrize("kind", KINDS)
    def test_an_outcome_that_is_stored_is_held(self, kind, caplog):
        (outcome,) = map(self.KINDS[kind], performed(1))
        assert settle("default", [outcome]) == {outcome.job_id}
        assert settle("default", [outcome]) == {outcome.job_id}
        assert "no longer" not in caplog.text
        assert states() == ({} if kind == "dropped" else {outcome.job_id: kind})
        assert Attempt.objects.count() == (kind == "scheduled")

    def test_one_query_more_for_all_of_them(self):
        kinds = list(self.KINDS.values())
        outcomes = [kinds[i % 4](each) for i, each in enumerate(performed(12))]
        settle("default", outcomes)
        with statements() as found:
            assert len(settle("default", outcomes)) == 12
        assert len(found.changes) == 2

    def test_the_rest_of_the_batch_is_recorded(self, caplog):
        stored, lost, new = performed(3)
        settle("default", [stored, replace(lost, worker_id="another")])
        won = settle("default", [stored, lost, new])
        assert won == {stored.job_id, new.job_id}
        assert f"Job {lost.job_id} is no longer" in caplog.text
        assert f"Job {stored.job_id} is no longer" not in caplog.text

    def test_a_job_that_has_moved_on_since(self):
        failure, again = performed(2)
        failure = failed(failure)
        again = failed(again, retry_at=again.finished_at)
        settle("default", [failure, again])
        retry("default", failure.job_id)
        drain()
        assert settle("default", [failure, again]) == {failure.job_id, again.job_id}
        assert set(states().values()) == {"finished"}

    def test_a_result_that_the_database_refused(self):
        if connection.vendor != "postgresql":
            pytest.skip("only PostgreSQL refuses NUL characters in text")
        (outcome,) = performed(1)
        poisoned = replace(outcome, result='"\0"')
        for _ in range(2):
            assert settle("default", [poisoned]) == {outcome.job_id}
        assert list(states().values()) == ["failed"]

    def test_a_job_that_is_not_gone_has_not_been_dropped(self):
        (outcome,) = performed(1)
        dropped = replace(outcome, keep=False)
        settle("default", [replace(outcome, worker_id="another")])
        assert settle("default", [dropped]) == set()

    def test_moments_in_another_zone(self):
        (outcome,) = performed(1)
        settle("default", [outcome])
        there = outcome.finished_at.astimezone(ZoneInfo("Asia/Tokyo"))
        assert settle("default", [replace(outcome, finished_at=there)])

    def test_a_project_without_time_zones(self, settings):
        settings.USE_TZ = False
        settings.TIME_ZONE = "Europe/Madrid"
        (outcome,) = performed(1)
        for _ in range(2):
            assert settle("default", [outcome]) == {outcome.job_id}


def test_a_batch_larger_than_a_statement_may_be():
    """Five results of four megabytes: more than a MariaDB server takes at once."""
    outcomes = [replace(o, result=f'"{"x" * 4_000_000}"') for o in performed(5)]
    assert len(settle("default", outcomes)) == 5
    assert set(states().values()) == {"finished"}


class Refusals:
    """Makes the store refuse outcomes as drivers of other databases do."""

    def __init__(self, monkeypatch, is_refused, error):
        settle_all = type(store_for("default")).settle

        def settle(store, outcomes):
            if any(map(is_refused, outcomes)):
                raise error
            return settle_all(store, outcomes)

        monkeypatch.setattr(type(store_for("default")), "settle", settle)


def test_what_is_refused_by_another_name_fails_alone(monkeypatch):
    good, bad, fine = performed(3)
    refusal = OperationalError(1366, "Incorrect string value")
    Refusals(monkeypatch, lambda each: each == bad, refusal)
    assert settle("default", [good, bad, fine]) == {
        good.job_id,
        bad.job_id,
        fine.job_id,
    }
    assert sorted(states().values()) == ["failed", "finished", "finished"]
    assert "Incorrect string value" in FailedExecution.objects.get().message


def test_a_refused_failure_is_told_in_plain_characters(monkeypatch):
    (outcome,) = performed(1)
    failure = failed(outcome, message="böse 💥\x00", traceback="t" * 10_000 + "ü")
    refusal = OperationalError(1366, "Incorrect string value")
    Refusals(monkeypatch, lambda each: not each.message.isascii(), refusal)
    settle("default", [failure])
    stored = FailedExecution.objects.get()
    assert stored.exception_class == failure.exception_class
    assert stored.message == "b\\xf6se \\U0001f4a5\\x00"
    assert stored.traceback.endswith("\\xfc")


def test_a_result_larger_than_the_server_reads_fails():
    if connection.vendor != "mysql":
        pytest.skip("only MySQL hangs up on large statements")
    large, small = performed(2)
    outcomes = [replace(large, result="x" * 17 * 1024 * 1024), small]
    assert settle("default", outcomes) == {large.job_id, small.job_id}
    assert sorted(states().values()) == ["failed", "finished"]


def test_a_server_that_is_away_refuses_nothing(monkeypatch):
    (outcome,) = performed(1)
    away = OperationalError("server closed the connection unexpectedly")
    Refusals(monkeypatch, lambda each: True, away)
    monkeypatch.setattr(connections["default"], "is_usable", lambda: False)
    with pytest.raises(OperationalError):
        settle("default", [outcome])
    assert list(states().values()) == ["claimed"]
