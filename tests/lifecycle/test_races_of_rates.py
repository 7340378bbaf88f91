"""Two connections and one bucket. Each test names the race that must not be lost."""

from itertools import pairwise

import pytest
from django.utils import timezone

from robust_queue.lifecycle import rates, rates_sweep
from robust_queue.lifecycle.claim import claim
from robust_queue.models import RateBucket, ScheduledExecution
from tests.support import rows
from tests.support.invariants import states
from tests.support.processes import a_process
from tests.support.threads import in_thread, in_threads, started, uncommitted
from tests.support.waiting import until_somebody_waits
from tests.testapp.rated_tasks import ask, send, slow

pytestmark = pytest.mark.django_db(transaction=True)

KEY = f"{slow.module_path}/"


def take(count=1):
    return claim("default", process_id=a_process(), limit=count)


def admit(claims):
    return rates.admitted("default", claims, worker_id="w")


@pytest.mark.usefixtures("row_locks")
def test_two_want_the_last_token():
    rows.rate_bucket(key=KEY, level=1, counted_at=timezone.now())
    for n in range(2):
        slow.enqueue(n)
    first, second = take(), take()
    with uncommitted(admit, first) as begun:
        assert len(begun) == 1
        racing = started(admit, second)
        until_somebody_waits()
    assert racing.result(30) == []
    assert sorted(states().values()) == ["claimed", "scheduled"]


@pytest.mark.usefixtures("row_locks")
def test_if_the_first_gives_up_the_second_has_it():
    rows.rate_bucket(key=KEY, level=1, counted_at=timezone.now())
    for n in range(2):
        slow.enqueue(n)
    first, second = take(), take()

    def give_up():
        with pytest.raises(ZeroDivisionError), rates.transaction.atomic():
            admit(first)
            raise ZeroDivisionError

    in_thread(give_up)
    assert len(admit(second)) == 1


@pytest.mark.usefixtures("row_locks")
def test_two_make_the_bucket_at_once():
    for n in range(4):
        slow.enqueue(n)
    first, second = take(), take(3)
    with uncommitted(admit, first) as begun:
        assert len(begun) == 1
        racing = started(admit, second)
        until_somebody_waits()
    assert len(racing.result(30)) == 1
    assert RateBucket.objects.count() == 1
    assert ScheduledExecution.objects.count() == 2


def test_of_many_at_once_as_many_begin_as_may():
    for n in range(40):
        ask.enqueue(n)
        send.enqueue(n, to=n % 5)
    claims = [take(10) for _ in range(8)]
    begun = in_threads([lambda each=each: admit(each) for each in claims])
    paths = [each.task_path for some in begun for each in some]
    assert paths.count(ask.module_path) == 3
    assert paths.count(send.module_path) == 5
    assert sorted(states().values()) == ["claimed"] * 8 + ["scheduled"] * 72


def test_appointments_are_given_once_however_many_give_them():
    for n in range(42):
        slow.enqueue(n)
    claims = [take(7) for _ in range(6)]
    in_threads([lambda each=each: admit(each) for each in claims])
    moments = ScheduledExecution.objects.order_by("scheduled_at")
    found = list(moments.values_list("scheduled_at", flat=True))
    distances = [(b - a).total_seconds() for a, b in pairwise(found)]
    assert len(found) == 40
    assert distances == pytest.approx([3600] * 39, abs=0.001)


@pytest.mark.usefixtures("row_locks")
def test_a_bucket_that_is_used_this_moment_is_not_swept():
    old = timezone.now() - timezone.timedelta(days=800)
    rows.rate_bucket(key=KEY, level=2, counted_at=old)
    slow.enqueue("it")
    (claimed,) = take()
    with uncommitted(admit, [claimed]):
        racing = started(rates_sweep.sweep, "default")
        until_somebody_waits()
    assert racing.result(30) == 0
    assert RateBucket.objects.get().level < 2
