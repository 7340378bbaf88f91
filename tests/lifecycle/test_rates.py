"""What may begin, what is told to come back, and what everybody finds afterwards."""

import logging
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from robust_queue import RateLimit, rerun
from robust_queue.compat import InvalidTask
from robust_queue.lifecycle import rates, rates_sweep
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.models import (
    ClaimedExecution,
    Job,
    RateBucket,
    ReadyExecution,
    ScheduledExecution,
)
from robust_queue.testing import drain
from tests.support import rows
from tests.support.invariants import state_of, states
from tests.support.processes import a_process
from tests.support.statements import statements
from tests.testapp.models import Customer
from tests.testapp.rated_tasks import ask, ask_again, print_out, send, slow
from tests.testapp.tasks import note

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def as_declared():
    declared = {each: each.rate_limit for each in (send, slow, note)}
    yield
    for each, limit in declared.items():
        object.__setattr__(each, "rate_limit", limit)


def begun(limit=100):
    """Claim everything; return the arguments of what may begin, in order."""
    claims = claim("default", process_id=a_process(), limit=limit)
    may_begin = rates.admitted("default", claims, worker_id="w")
    return [Job.objects.get(pk=each.job_id).arguments for each in may_begin]


def told():
    """In how many hours those are to come back that were told to, rounded."""
    moments = ScheduledExecution.objects.order_by("scheduled_at")
    found = moments.values_list("scheduled_at", flat=True)
    return [round((each - timezone.now()) / HOUR, 1) for each in found]


def test_so_many_begin_and_the_others_are_spread_at_exactly_the_rate():
    for n in range(6):
        slow.enqueue(n)
    assert len(begun()) == 2
    assert told() == [1.0, 2.0, 3.0, 4.0]
    assert sorted(states().values()) == ["claimed"] * 2 + ["scheduled"] * 4


def test_those_that_come_later_are_told_to_come_behind_them():
    for n in range(4):
        slow.enqueue(n)
    assert len(begun()) == 2
    slow.enqueue("later")
    assert begun() == []
    assert told() == [1.0, 2.0, 3.0]


def test_no_attempt_is_burnt():
    for n in range(3):
        slow.enqueue(n)
    begun()
    assert ScheduledExecution.objects.get().attempts == 0
    assert {each.attempts for each in ClaimedExecution.objects.all()} == {1}


def test_who_comes_back_takes_a_token_of_its_own():
    """After an outage all appointments are over, and the rate still holds."""
    for n in range(12):
        slow.enqueue(n)
    assert len(begun()) == 2
    dispatch_due("default", now=timezone.now() + 100 * HOUR)
    assert ReadyExecution.objects.count() == 10
    assert begun() == []
    # An hour has passed: there is one more.
    RateBucket.objects.update(counted_at=timezone.now() - HOUR)
    dispatch_due("default", now=timezone.now() + 100 * HOUR)
    assert len(begun()) == 1


def test_keys_have_buckets_of_their_own():
    for label, to in [("a1", "ada"), ("b1", "bob"), ("a2", "ada"), ("-", None)]:
        send.enqueue(label, to=to)
    assert [each.split('"')[3] for each in begun()] == ["a1", "b1", "-"]
    assert RateBucket.objects.count() == 2


def test_tasks_of_one_group_have_a_bucket_in_common():
    for n in range(3):
        ask.enqueue(n)
        ask_again.enqueue(n)
    assert len(begun()) == 3
    assert RateBucket.objects.get().key == "partner/api"


def test_what_has_no_rate_is_not_asked_about():
    note.enqueue()
    claims = claim("default", process_id=a_process())
    with statements() as sent:
        assert rates.limited(claims) == set()
    assert sent == []


def test_a_batch_takes_a_few_statements_whatever_its_size():
    for n in range(50):
        slow.enqueue(n)
    begun(limit=10)
    claims = claim("default", process_id=a_process(), limit=40)
    with statements() as sent:
        assert rates.admitted("default", claims, worker_id="w") == []
    buckets = [each for each in sent.changes if "rate_buckets" in each]
    # One of them asks who was told to come last.
    assert len(buckets) == 4


def test_heavy_ones_count_more():
    for pages in (4, 5, 3, 1):
        print_out.enqueue(pages)
    assert len(begun()) == 2
    assert RateBucket.objects.get().level == pytest.approx(1, abs=0.1)
    assert told() == [0.2, 0.3]


def test_a_key_that_cannot_be_found_is_told_to_the_enqueuer():
    limit = RateLimit("1/s", key=lambda label, to=None: to.pk)
    object.__setattr__(send, "rate_limit", limit)
    with pytest.raises(InvalidTask, match="the rate limit of this call"):
        send.enqueue("it")
    assert Job.objects.count() == 0


def test_what_was_enqueued_before_there_was_a_limit_is_limited_all_together():
    for n in range(3):
        note.enqueue(to=n)
    limit = RateLimit("1/hour", key=lambda to: to, weight=lambda to: 9)
    object.__setattr__(note, "rate_limit", limit)
    assert len(begun()) == 1
    assert RateBucket.objects.get().key == f"{note.module_path}/"


@pytest.mark.parametrize(
    "metadata",
    [
        *("nonsense", "[]", '{"rate": 7}', '{"rate": ["a"]}', '{"rate": ["a", -1]}'),
        *('{"rate": ["a", NaN]}', '{"rate": ["a", Infinity]}', '{"rate": [1, 1]}'),
        '{"rate": ["%s", 1]}' % ("\\u0000é" * 5000),
    ],
)
def test_whatever_a_row_says_it_is_limited(metadata):
    for n in range(2):
        slow.enqueue(n)
    Job.objects.update(metadata=metadata)
    object.__setattr__(slow, "rate_limit", RateLimit("1/hour"))
    assert len(begun()) == 1
    assert len(told()) == 1


def test_who_is_replaced_is_limited_by_what_it_is_called_with_now():
    send.enqueue("first", to="bob")
    result = send.using(run_after=HOUR).enqueue("it", to="ada")
    new = rerun(result.id, kwargs={"to": "bob"}, run_after=timezone.now())
    assert len(begun()) == 1
    assert state_of(new) == "scheduled"


def test_models_are_keys():
    customer = Customer.objects.create()
    send.enqueue("it", to=customer)
    begun()
    assert RateBucket.objects.get().key.endswith(f"/testapp.Customer:{customer.pk}")


def test_nobody_is_told_but_those_who_look_for_errors(caplog):
    caplog.set_level(logging.DEBUG, "robust_queue")
    for n in range(5):
        slow.enqueue(n)
    caplog.clear()
    begun()
    lines = [each for each in caplog.records if each.name == "robust_queue"]
    assert [each.levelname for each in lines] == ["DEBUG"]
    assert "3 jobs are told to come back" in lines[0].getMessage()


def test_a_claim_that_was_lost_takes_a_token_and_changes_nothing():
    for n in range(3):
        slow.enqueue(n)
    claims = claim("default", process_id=a_process(), limit=3)
    ClaimedExecution.objects.all().delete()
    assert len(rates.admitted("default", claims, worker_id="w")) == 2
    assert not ScheduledExecution.objects.exists()


def test_a_clock_that_was_set_back_grants_nothing_and_delays_nobody():
    later = timezone.now() + 100 * HOUR
    key = f"{slow.module_path}/"
    rows.rate_bucket(key=key, level=0, counted_at=later, spread_to=later + 2 * HOUR)
    slow.enqueue("it")
    assert begun() == []
    assert told() == [3.0]


def test_tests_of_applications_do_not_wait_for_rates(performed):
    for n in range(5):
        slow.enqueue(n)
    drain()
    assert performed == [0, 1, 2, 3, 4]
    assert not RateBucket.objects.exists()


def test_it_is_the_same_without_time_zones(settings):
    settings.USE_TZ = False
    settings.TIME_ZONE = "Asia/Kolkata"
    for n in range(4):
        slow.enqueue(n)
    assert len(begun()) == 2
    assert told() == [1.0, 2.0]
    slow.enqueue("later")
    assert begun() == []
    assert told() == [1.0, 2.0, 3.0]
    assert rates_sweep.sweep("default") == 0


class TestSweep:
    def test_what_is_full_and_old_goes(self):
        old = timezone.now() - timedelta(days=800)
        for n in range(5):
            rows.rate_bucket(counted_at=old, spread_to=old if n else None)
        assert rates_sweep.sweep("default", limit=3) == 3
        assert rates_sweep.sweep("default") == 2
        assert rates_sweep.sweep("default") == 0

    @pytest.mark.parametrize(
        ("counted", "spread"), [(0, None), (800, 0), (800, -1), (0.9, None)]
    )
    def test_what_is_in_use_stays(self, counted, spread):
        now = timezone.now()
        rows.rate_bucket(
            counted_at=now - timedelta(days=counted),
            spread_to=None if spread is None else now - timedelta(days=spread),
        )
        assert rates_sweep.sweep("default") == 0

    def test_long_periods_are_waited_for(self):
        object.__setattr__(slow, "rate_limit", RateLimit("1/30d"))
        rows.rate_bucket(counted_at=timezone.now() - timedelta(days=20))
        assert rates_sweep.sweep("default") == 0
        RateBucket.objects.update(counted_at=datetime(2020, 1, 1, tzinfo=UTC))
        assert rates_sweep.sweep("default") == 1
