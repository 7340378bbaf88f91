"""Unique tasks as they are declared, and the keys of their calls."""

from datetime import timedelta
from decimal import Decimal

import pytest

from robust_queue import Unique, task
from robust_queue.backoffs import LONGEST_DELAY
from robust_queue.compat import InvalidTask
from robust_queue.declaration import Call
from robust_queue.lifecycle.unique_keys import unique_key
from tests.testapp import unique_tasks as tasks
from tests.testapp.models import Customer


def key(task, *args, **kwargs):
    return unique_key(task.unique, Call(task, args, kwargs))


@pytest.mark.parametrize(
    "nonsense",
    [
        {"by": ""},
        {"by": ()},
        {"by": ("a", 1)},
        {"by": ("a", "")},
        {"by": 7},
        {"by": None},
        {"until": "tomorrow"},
        {"period": 0},
        {"period": timedelta(-1)},
        {"period": "an hour"},
        {"period": True},
        {"period": LONGEST_DELAY + timedelta(1)},
        {"period": timedelta(1), "until": "started"},
        {"on_conflict": "block"},
        {"on_conflict": []},
        {"group": ""},
        {"group": 7},
    ],
)
def test_nonsense_is_refused(nonsense):
    with pytest.raises(InvalidTask, match="Unique: "):
        Unique(**nonsense)


def test_a_coroutine_function_is_no_key():
    async def find(value):
        return value

    with pytest.raises(InvalidTask, match="by must be"):
        Unique(by=find)


def test_only_a_unique_will_do():
    with pytest.raises(InvalidTask, match="unique must be a Unique"):
        task(unique=True)(len)


def test_a_period_in_seconds_and_a_list_of_names():
    unique = Unique(by=["a", "b"], period=60)
    assert unique.period == timedelta(minutes=1)
    assert unique.by == ("a", "b")


class TestByArguments:
    def test_however_they_are_passed(self):
        same = key(tasks.once, 1, 0)
        assert len(same) == 64
        assert key(tasks.once, 1) == same
        assert key(tasks.once, value=1) == same
        assert key(tasks.once, other=0, value=1) == same

    def test_other_values_are_other_calls(self):
        found = [
            key(tasks.once, value)
            for value in (None, 0, 1, 1.5, True, "1", [1], (1,), {"a": 1}, Decimal(1))
        ]
        assert len(set(found)) == len(found)

    def test_the_order_of_a_dictionary_does_not_count(self):
        deep = {"a": [{"x": 1, "y": 2}], "b": 2}
        other = {"b": 2, "a": [{"y": 2, "x": 1}]}
        assert key(tasks.once, deep) == key(tasks.once, other)

    def test_the_context_does_not_count(self):
        assert key(tasks.once_with_context, 1) == key(tasks.once_with_context, value=1)

    def test_a_default_that_cannot_be_stored(self):
        assert key(tasks.with_an_odd_default, 1) == key(tasks.with_an_odd_default, 1)
        assert key(tasks.with_an_odd_default, 1) != key(tasks.with_an_odd_default, 2)

    def test_odd_texts(self):
        odd = ["", "\x00", "\ud800", "ä", "a\nb", "x" * 100_000]
        assert len({key(tasks.once, each) for each in odd}) == len(odd)


class TestByNames:
    def test_the_others_do_not_count(self):
        assert key(tasks.latest, 7, "a") == key(tasks.latest, customer=7, text="b")
        assert key(tasks.latest, 7) != key(tasks.latest, 8)

    def test_a_name_that_is_no_parameter(self):
        with pytest.raises(InvalidTask, match="'nothing', which is no parameter"):
            tasks.by_a_stranger.enqueue()

    def test_parentheses_are_no_tuple(self):
        with pytest.raises(InvalidTask, match=r"by=\('value',\)"):
            tasks.by_a_text_that_names_a_parameter.enqueue(1)


class TestByText:
    def test_all_calls_are_the_same(self):
        assert key(tasks.all_the_same, 1) == key(tasks.all_the_same, 2)


class TestByFunction:
    def test_none_means_not_unique(self):
        assert key(tasks.keyed) == ""
        assert key(tasks.keyed, "") != ""

    def test_several_values(self):
        assert key(tasks.keyed, ("a", "b")) == key(tasks.keyed, ["a", "b"])
        assert key(tasks.keyed, ("a", "b")) != key(tasks.keyed, ("b", "a"))
        assert key(tasks.keyed, ("a", "b")) != key(tasks.keyed, ("ab",))
        assert key(tasks.keyed, {"a", "b"}) == key(tasks.keyed, frozenset("ba"))

    @pytest.mark.django_db
    def test_a_model_is_known_by_its_primary_key(self):
        ada = Customer.objects.create(name="Ada")
        again = Customer.objects.get(pk=ada.pk)
        assert key(tasks.keyed, ada) == key(tasks.keyed, again)
        bob = Customer.objects.create(name="Bob")
        assert key(tasks.keyed, ada) != key(tasks.keyed, bob)

    def test_one_that_raises_is_named(self):
        with pytest.raises(InvalidTask, match=r"with_a_broken_key.*ZeroDivisionError"):
            tasks.with_a_broken_key.enqueue()


class TestGroups:
    def test_tasks_are_apart(self):
        assert key(tasks.once, 1) != key(tasks.hourly, 1)

    def test_unless_they_are_of_one_group(self):
        assert key(tasks.first_of_a_group, 1) == key(tasks.second_of_a_group, 1, 5)
