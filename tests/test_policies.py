"""Retries as decisions: pure, and safe against whatever a backoff does."""

import math
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import robust_queue
from robust_queue.compat import InvalidTask, Task
from robust_queue.policies import (
    CRASH_ATTEMPTS,
    LONGEST_DELAY,
    exponential,
    judge,
    judge_crash,
    may_run_again,
)
from tests.testapp.tasks import note

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ERROR = OSError("gone")


def retry_at(*given, **more):
    return judge(*given, **more).retry_at


def retry_at_after_crash(*given, **more):
    return judge_crash(*given, **more).retry_at


MINUTE = timedelta(minutes=1)


def seconds(backoff, *attempts):
    return [backoff(ERROR, attempt).total_seconds() for attempt in attempts]


def a_task(**policies):
    declared = {"max_attempts": None, "backoff": None, "on_crash": None}
    return SimpleNamespace(module_path="shop.tasks.pay", **{**declared, **policies})


class TestExponential:
    def test_it_grows_by_its_factor(self):
        assert seconds(exponential(jitter=0), 1, 2, 3, 4) == [20, 40, 80, 160]
        assert seconds(exponential(1, factor=3, jitter=0), 1, 2, 3) == [1, 3, 9]

    def test_a_factor_of_one_stays_the_same(self):
        assert seconds(exponential(5, factor=1, jitter=0), 1, 50) == [5, 5]

    def test_durations_are_timedeltas_or_seconds(self):
        assert exponential(60, cap=120.0) == exponential(MINUTE, cap=2 * MINUTE)

    def test_it_is_a_value(self):
        assert exponential() == exponential(20)
        assert hash(exponential()) == hash(exponential())
        with pytest.raises(AttributeError):
            exponential().base = MINUTE

    def test_what_failed_together_is_not_tried_together(self):
        backoff = exponential(100, cap=100, jitter=0.5)
        delays = {backoff(ERROR, attempt) for attempt in range(1, 50)}
        assert len(delays) > 40, "not even those that have reached the cap"

    @given(
        base=st.floats(0.001, 10_000),
        factor=st.floats(1, 1e308),
        more=st.floats(1, 1_000),
        jitter=st.floats(0, 1),
        attempt=st.integers(0, 10_000),
    )
    @example(base=20, factor=2, more=180, jitter=0.1, attempt=10_000)
    def test_never_above_the_cap_and_never_below_zero(
        self, base, factor, more, jitter, attempt
    ):
        cap = timedelta(seconds=base * more)
        backoff = exponential(base, factor=factor, cap=cap, jitter=jitter)
        assert timedelta(0) <= backoff(ERROR, attempt) <= cap

    @given(attempt=st.integers(1, 6), jitter=st.floats(0, 1))
    def test_the_jitter_is_a_fraction(self, attempt, jitter):
        plain = 20 * 2 ** (attempt - 1)
        (delay,) = seconds(exponential(jitter=jitter), attempt)
        assert math.isclose(delay, plain, rel_tol=jitter + 1e-6, abs_tol=jitter * plain)

    @pytest.mark.parametrize("base", [0, -1, True, "20", None, math.nan, math.inf])
    def test_a_base_that_makes_no_sense(self, base):
        with pytest.raises(ValueError, match="base must be"):
            exponential(base)

    def test_a_base_out_of_reach(self):
        with pytest.raises(ValueError, match="base is out of reach"):
            exponential(1e300)

    @pytest.mark.parametrize("cap", [1, LONGEST_DELAY + MINUTE, "1h", 10**400])
    def test_a_cap_that_makes_no_sense(self, cap):
        with pytest.raises(ValueError, match="cap must be"):
            exponential(20, cap=cap)

    @pytest.mark.parametrize("factor", [0.9, -2, math.nan, math.inf, "2", True])
    def test_a_factor_that_makes_no_sense(self, factor):
        with pytest.raises(ValueError, match="factor must be"):
            exponential(factor=factor)

    @pytest.mark.parametrize("jitter", [-0.1, 1.1, math.nan, None])
    def test_a_jitter_that_makes_no_sense(self, jitter):
        with pytest.raises(ValueError, match="jitter must be"):
            exponential(jitter=jitter)

    def test_it_is_exported(self):
        assert robust_queue.exponential is exponential
        assert "exponential" in robust_queue.__all__


class TestAfterAFailure:
    def at(self, task, attempts):
        return retry_at(task, ERROR, attempts=attempts, now=NOW)

    @pytest.mark.parametrize("task", [None, note, a_task(), a_task(max_attempts=1)])
    def test_one_attempt_unless_more_are_declared(self, task):
        assert self.at(task, 1) is None

    def test_a_plain_task_of_django(self):
        plain = object.__new__(Task)
        assert self.at(plain, 1) is None
        assert not may_run_again(plain, attempts=1)

    def test_until_the_attempts_are_used_up(self):
        task = a_task(max_attempts=3, backoff=lambda error, attempt: attempt * MINUTE)
        moments = [self.at(task, attempts) for attempts in (1, 2, 3, 4)]
        assert moments == [NOW + MINUTE, NOW + 2 * MINUTE, None, None]

    def test_the_backoff_sees_the_exception_and_may_decline(self):
        def only_timeouts(error, attempt):
            return MINUTE if isinstance(error, TimeoutError) else None

        task = a_task(max_attempts=3, backoff=only_timeouts)
        assert self.at(task, 1) is None
        later = retry_at(task, TimeoutError(), attempts=1, now=NOW)
        assert later == NOW + MINUTE

    def test_the_default_backoff(self):
        delay = self.at(a_task(max_attempts=2), 1) - NOW
        assert timedelta(seconds=18) <= delay <= timedelta(seconds=22)

    @pytest.mark.parametrize(
        "backoff",
        [
            lambda error, attempt: 1 / 0,
            lambda error, attempt: sys.exit(1),
            lambda error: MINUTE,
            lambda error, attempt: 60,
            lambda error, attempt: -MINUTE,
            lambda error, attempt: timedelta.max,
        ],
    )
    def test_a_backoff_that_fails_does_not_lose_the_job(self, backoff, caplog):
        delay = self.at(a_task(max_attempts=2, backoff=backoff), 1) - NOW
        assert timedelta(seconds=18) <= delay <= timedelta(seconds=22)
        assert "The backoff of shop.tasks.pay failed" in caplog.text

    @given(attempts=st.integers(1, 40_000), most=st.integers(1, 32_000))
    def test_never_more_attempts_than_declared(self, attempts, most):
        assert (self.at(a_task(max_attempts=most), attempts) is None) == (
            attempts >= most
        )


class TestAfterACrash:
    @pytest.mark.parametrize(
        ("policies", "attempts"),
        [
            ({}, 1),
            ({"max_attempts": 1}, 1),
            ({"max_attempts": 4}, 4),
            ({"max_attempts": 4, "on_crash": "retry"}, 4),
            ({"max_attempts": 1, "on_crash": "retry"}, 1),
            ({"on_crash": "retry"}, CRASH_ATTEMPTS),
            ({"on_crash": "fail"}, 1),
            ({"on_crash": "fail", "max_attempts": 4}, 1),
        ],
    )
    def test_how_many_attempts_there_are_at_most(self, policies, attempts):
        task = a_task(**policies)
        again = [may_run_again(task, attempts=n) for n in range(1, 6)]
        assert again == [n < attempts for n in range(1, 6)]
        moments = [
            retry_at_after_crash(task, ERROR, attempts=n, now=NOW) for n in range(1, 6)
        ]
        assert [moment is not None for moment in moments] == again

    def test_a_task_that_is_gone(self):
        assert not may_run_again(None, attempts=1)
        assert retry_at_after_crash(None, ERROR, attempts=1, now=NOW) is None

    def test_after_its_backoff(self):
        task = a_task(on_crash="retry", backoff=lambda error, attempt: MINUTE)
        moment = retry_at_after_crash(task, ERROR, attempts=1, now=NOW)
        assert moment == NOW + MINUTE


class TestDeclaring:
    def declare(self, **policies):
        return robust_queue.task(**policies)(note.func)

    def test_what_makes_sense(self):
        backoff = exponential(5)
        task = self.declare(max_attempts=32_000, backoff=backoff, on_crash="retry")
        assert (task.max_attempts, task.backoff) == (32_000, backoff)
        assert task.using(priority=1).on_crash == "retry"

    @pytest.mark.parametrize("value", [0, -1, True, 2.0, "3", 32_001])
    def test_attempts_are_a_whole_number(self, value):
        with pytest.raises(InvalidTask, match="max_attempts must be a whole number"):
            self.declare(max_attempts=value)

    async def later(self, exception, attempt):
        """A backoff that nobody would await."""

    @pytest.mark.parametrize("value", [20, "exponential", MINUTE, later])
    def test_a_backoff_can_be_called(self, value):
        with pytest.raises(InvalidTask, match="backoff must be a function"):
            self.declare(backoff=value)

    @pytest.mark.parametrize("value", ["ignore", True, 1, ["retry"]])
    def test_a_crash_is_a_failure_or_retried(self, value):
        with pytest.raises(InvalidTask, match="'fail' or 'retry'"):
            self.declare(on_crash=value)

    def test_they_belong_to_the_declaration(self):
        with pytest.raises(TypeError, match="max_attempts"):
            note.using(max_attempts=3)
