"""Rates as tasks declare them: what is understood, and what is refused."""

import logging
from datetime import timedelta

import pytest

from robust_queue import RateLimit
from robust_queue.compat import InvalidTask
from robust_queue.declaration import task
from robust_queue.flow.rates import Demand, demand_of
from tests.testapp.models import Customer
from tests.testapp.tasks import note


class TestRate:
    @pytest.mark.parametrize(
        ("rate", "count", "seconds"),
        [
            ("100/s", 100, 1),
            ("100/second", 100, 1),
            ("5/10s", 5, 10),
            (" 5 / 10 s ", 5, 10),
            ("10/minute", 10, 60),
            ("1000/hour", 1000, 3600),
            ("1/day", 1, 86400),
            ("3/2days", 3, 2 * 86400),
            ("7/250ms", 7, 0.25),
            ((100, timedelta(minutes=1)), 100, 60),
        ],
    )
    def test_it_is_a_count_and_a_period(self, rate, count, seconds):
        limit = RateLimit(rate)
        assert (limit.count, limit.seconds) == (count, seconds)
        assert limit.per_second == count / seconds

    @pytest.mark.parametrize(
        "rate",
        [
            *("", "100", "100/", "/s", "100/fortnight", "-1/s", "1.5/s", "1e3/s"),
            *("0/s", "100/0s", "9999999999/s", "1/367d", "1/9999999999d", "٣/s"),
            *(None, 100, True, (100, 60), (True, timedelta(1)), (1.5, timedelta(1))),
            *((0, timedelta(1)), (1, timedelta(0)), (1, timedelta.max), (1,), [1, 2]),
        ],
    )
    def test_nonsense_is_refused(self, rate):
        with pytest.raises(InvalidTask, match="is no rate"):
            RateLimit(rate)

    def test_it_is_a_value(self):
        assert RateLimit("1/s") == RateLimit("1/s")
        assert repr(RateLimit("1/s")).startswith("RateLimit(rate='1/s', key=''")


class TestSize:
    @pytest.mark.parametrize(
        ("declared", "size"),
        [
            ({"rate": "100/s"}, 100),
            ({"rate": "7/250ms"}, 7),
            ({"rate": "120/minute"}, 2),
            ({"rate": "10/minute"}, 1),
            ({"rate": "10/minute", "weight": 4}, 4),
            ({"rate": "10/minute", "burst": 5}, 5),
            ({"rate": "10/minute", "weight": len}, 10),
            ({"rate": "10/minute", "algorithm": "fixed_window"}, 10),
        ],
    )
    def test_how_many_may_begin_at_once(self, declared, size):
        assert RateLimit(**declared).size == size

    def test_never_one_more_for_those_that_come_late(self):
        for rate in ("1/day", "1/s", "1000/s", "1000000/s"):
            limit = RateLimit(rate)
            assert limit.size < limit.depth < limit.size + 1
        assert RateLimit("1/s", algorithm="fixed_window").depth == 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("declared", "words"),
        [
            ({"key": 7}, "key must be a text or a function"),
            ({"group": ""}, "group must be a text"),
            ({"group": 7}, "group must be a text"),
            ({"algorithm": "leaky"}, "algorithm must be"),
            ({"burst": 0}, "burst must be a whole number"),
            ({"burst": True}, "burst must be a whole number"),
            ({"burst": 2, "algorithm": "fixed_window"}, "a fixed window has no burst"),
            ({"weight": 0}, "weight must be a number above zero"),
            ({"weight": float("nan")}, "weight must be a number above zero"),
            ({"weight": "2"}, "weight must be a number above zero"),
            ({"weight": 6, "burst": 5}, "of weight 6 could never begin"),
            ({"weight": 9, "algorithm": "fixed_window"}, "of weight 9 could never"),
        ],
    )
    def test_what_makes_no_sense(self, declared, words):
        with pytest.raises(InvalidTask, match=words):
            RateLimit("1/s", **declared)

    def test_what_is_no_limit(self):
        with pytest.raises(InvalidTask, match="rate_limit must be a RateLimit"):
            task(rate_limit=7)(lambda: None)

    def test_the_rate_alone_will_do(self):
        assert task(rate_limit="5/10s")(noted).rate_limit == RateLimit("5/10s")
        declared = task(rate_limit=(5, timedelta(seconds=10)))(noted)
        assert declared.rate_limit.seconds == 10


def noted():
    pass


class TestDemand:
    def demand(self, *args, **declared):
        return demand_of(RateLimit("5/s", **declared), note, args, {})

    def test_keys_of_different_tasks_are_apart(self):
        assert self.demand().key == f"{note.module_path}/"
        assert self.demand(key="a").key == f"{note.module_path}/a"

    def test_unless_they_name_the_same_group(self):
        assert self.demand(key="a", group="g").key == "g/a"

    def test_a_key_from_the_arguments(self):
        assert self.demand("ada", key=lambda to: to, group="g") == Demand("g/ada", 1)
        customer = Customer(pk=7)
        assert self.demand(customer, key=lambda to: to, group="g").key == (
            "g/testapp.Customer:7"
        )

    def test_none_is_no_limit(self):
        assert self.demand(key=lambda: None) is None

    def test_a_key_of_any_length(self):
        assert len(self.demand("x" * 10_000, key=lambda to: to).key) == 255

    @pytest.mark.parametrize("found", [(), ("a", "b")])
    def test_one_key_it_is(self, found):
        if not found:
            assert self.demand(key=lambda: found) is None
            return
        with pytest.raises(InvalidTask, match="a call has one key, not 2"):
            self.demand(key=lambda: found)

    def test_a_key_that_raises_is_told_with_its_error(self):
        with pytest.raises(InvalidTask, match=r"tasks.note: .* ZeroDivisionError"):
            self.demand(0, key=lambda number: 1 / number)

    def test_a_weight_from_the_arguments(self):
        assert self.demand(3, weight=lambda pages: pages).weight == 3

    @pytest.mark.parametrize("found", [0, -1, None, "2", float("nan"), True])
    def test_a_weight_that_is_none(self, found):
        with pytest.raises(InvalidTask, match="weight of this call must be a number"):
            self.demand(weight=lambda: found)

    def test_a_weight_out_of_reach_counts_as_much_as_there_is(self, caplog):
        caplog.set_level(logging.WARNING, "robust_queue")
        assert self.demand(weight=lambda: 7).weight == 5
        assert "a call of weight 7 counts as 5" in caplog.text
