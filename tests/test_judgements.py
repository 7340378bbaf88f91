"""What becomes of a job: a pure decision."""

from datetime import UTC, datetime, timedelta

import pytest

from robust_queue.compat import InvalidTask
from robust_queue.exceptions import (
    Discard,
    Retry,
    TaskCancelled,
    TaskExpired,
    TaskTimeout,
)
from robust_queue.policies import Kind, Policy, judge, judge_crash, merged
from robust_queue.policy_readers import checked

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def policy(**declared):
    return Policy(**checked(declared))


def judged(declared, error, attempts=1, **more):
    found = judge(declared, error, attempts=attempts, now=NOW, **more)
    delay = found.retry_at and (found.retry_at - NOW).total_seconds()
    return found.kind, delay


ALWAYS = policy(max_attempts=5, backoff=[10])


@pytest.mark.parametrize(
    ("declared", "error", "verdict"),
    [
        (Policy(), OSError(), (Kind.ERROR, None)),
        (ALWAYS, OSError(), (Kind.ERROR, 10)),
        (
            policy(max_attempts=5, backoff=[10], retry_on=KeyError),
            OSError(),
            ("", None),
        ),
        (policy(max_attempts=5, backoff=[10], retry_on=OSError), OSError(), ("", 10)),
        (policy(max_attempts=5, backoff=[10], retry_on=()), OSError(), ("", None)),
        (policy(max_attempts=5, discard_on=OSError), OSError(), ("discarded", None)),
        # Discarding goes first.
        (
            policy(max_attempts=5, discard_on=OSError, retry_on=OSError),
            OSError(),
            ("discarded", None),
        ),
        # A timeout is a timeout, although it is an OSError.
        (policy(max_attempts=5, retry_on=OSError), TaskTimeout(), ("timed_out", None)),
        (
            policy(max_attempts=5, discard_on=OSError),
            TaskTimeout(),
            ("timed_out", None),
        ),
        (ALWAYS, TaskTimeout(), (Kind.TIMED_OUT, None)),
        (
            policy(max_attempts=5, backoff=[10], retry_on=TaskTimeout),
            TaskTimeout(),
            ("timed_out", 10),
        ),
        (policy(discard_on=TaskTimeout), TaskTimeout(), ("discarded", None)),
        (ALWAYS, TaskCancelled(), (Kind.CANCELLED, None)),
        (ALWAYS, TaskExpired(), (Kind.EXPIRED, None)),
        (ALWAYS, Discard("no"), (Kind.DISCARDED, None)),
        (policy(retry_on=()), Retry(after=7), (Kind.ERROR, 7)),
        (ALWAYS, Retry(), (Kind.ERROR, 10)),
        (ALWAYS, Retry(after=-7), (Kind.ERROR, 0)),
    ],
)
def test_verdicts(declared, error, verdict):
    assert judged(declared, error) == verdict


def test_attempts_are_limited():
    assert judged(ALWAYS, OSError(), attempts=4) == (Kind.ERROR, 10)
    assert judged(ALWAYS, OSError(), attempts=5) == (Kind.ERROR, None)
    assert judged(ALWAYS, Retry(after=1), attempts=5) == (Kind.ERROR, None)


def test_who_asks_for_another_attempt_and_says_no_more_has_three():
    assert judged(Policy(), Retry(after=1), attempts=2) == (Kind.ERROR, 1)
    assert judged(Policy(), Retry(after=1), attempts=3) == (Kind.ERROR, None)


def test_what_would_come_too_late_does_not_come():
    hour = policy(max_attempts=9, backoff=[1800], deadline=3600)
    assert judged(hour, OSError(), enqueued_at=NOW) == (Kind.ERROR, 1800)
    early = NOW - timedelta(minutes=45)
    assert judged(hour, OSError(), enqueued_at=early) == (Kind.ERROR, None)
    crash = judge_crash(hour, OSError(), attempts=1, now=NOW, enqueued_at=early)
    assert crash == (Kind.CRASHED, None)


def test_a_crash_is_no_matter_of_retry_on():
    declared = policy(max_attempts=2, backoff=[10], retry_on=())
    verdict = judge_crash(declared, OSError(), attempts=1, now=NOW)
    assert verdict == (Kind.CRASHED, NOW + timedelta(seconds=10))


def test_the_first_who_says_something_is_heard():
    task = policy(max_attempts=2, keep_result=0)
    queue = policy(max_attempts=3, timeout=MINUTE, retry_on=())
    backend = policy(max_attempts=4, timeout=5, deadline=6, retry_on=OSError)
    found = merged(task, queue, backend)
    assert (found.max_attempts, found.timeout) == (2, MINUTE)
    assert (found.retry_on, found.deadline) == ((), timedelta(seconds=6))
    assert found.keep_result == timedelta(0)
    assert merged(None, object()) == Policy()


@pytest.mark.parametrize(
    "declared",
    [
        {"max_attempts": 0},
        {"backoff": 5},
        {"backoff": []},
        {"retry_on": "OSError"},
        {"discard_on": (OSError, 5)},
        {"timeout": 0},
        {"timeout": -MINUTE},
        {"timeout": "soon"},
        {"deadline": 0},
        {"on_crash": "ignore"},
        {"isolation": "container"},
        {"keep_result": -1},
        {"patience": 5},
    ],
)
def test_declarations_that_make_no_sense(declared):
    with pytest.raises(InvalidTask, match=next(iter(declared))):
        checked(declared)
