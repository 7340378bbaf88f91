"""The decorator ``@recurring``: what it declares and what it refuses."""

import importlib
from pathlib import Path

import pytest

from robust_queue import recurrence, recurring, registry, task
from robust_queue.compat import InvalidTask
from robust_queue.exceptions import SerializationError
from robust_queue.recurrence import declared
from robust_queue.schedules import Schedule
from tests.testapp import backported, recurring_tasks
from tests.testapp.recurring_tasks import ballerina, greet, with_context


@pytest.fixture(autouse=True)
def isolated(monkeypatch):
    """What a test declares is forgotten behind it."""
    monkeypatch.setattr(recurrence, "_declared", list(recurrence._declared))
    monkeypatch.setattr(registry, "_declared", registry.declared())


def of(key):
    [found] = [each for each in declared() if each.key == key]
    return found


class TestWhatIsDeclared:
    def test_a_schedule(self):
        noon = of("rot the brains at noon")
        assert noon.task is ballerina
        assert noon.schedule == Schedule("0 12 * * *")
        assert (noon.args, noon.kwargs) == ((), {})
        assert (noon.queue_name, noon.priority) == (None, None)

    def test_arguments(self):
        counted = of("count down at noon")
        assert (counted.args, counted.kwargs) == ((10, 5), {"name": "Sahur"})

    def test_several_schedules_of_one_task(self):
        alice, bob = of("greet_alice"), of("greet_bob")
        assert alice.task is bob.task is greet
        assert (alice.args, bob.args) == (("Alice",), ("Bob",))
        assert alice.place != bob.place

    def test_queue_and_priority(self):
        given = of("given")
        assert (given.queue_name, given.priority) == ("urgent", 7)

    def test_the_place_is_a_module_and_a_line(self):
        module, _, line = of("greet_alice").place.partition(":")
        assert module == "tests.testapp.recurring_tasks"
        source = Path(recurring_tasks.__file__).read_text().splitlines()
        assert "greet_alice" in source[int(line) - 1]

    def test_the_task_is_returned_as_it_was(self):
        assert recurring(schedule="@daily", key="k", args=("A",))(greet) is greet

    def test_with_a_context_that_the_caller_does_not_pass(self):
        recurring(schedule="@daily", key="k", args=(1,))(with_context)
        assert of("k").args == (1,)

    def test_a_task_of_the_backport(self):
        recurring(schedule="@daily", key="k", args=("A",))(backported.greet)
        assert of("k").task is backported.greet

    def test_later_changes_of_the_arguments_have_no_effect(self):
        args, kwargs = ["A"], {}
        recurring(schedule="@daily", key="k", args=args, kwargs=kwargs)(greet)
        args.append("B")
        kwargs["name"] = "C"
        assert (of("k").args, of("k").kwargs) == (("A",), {})


class TestDeclaredAgain:
    def test_an_imported_module_may_be_imported_again(self):
        first = dict(vars(recurring_tasks))
        keys = sorted(each.key for each in declared())
        importlib.reload(recurring_tasks)
        try:
            assert sorted(each.key for each in declared()) == keys
            assert of("greet_bob").task is recurring_tasks.greet is not greet
        finally:
            # Other tests have imported the first ones.
            vars(recurring_tasks).update(first)

    def test_another_place_is_another_declaration(self):
        recurring(schedule="@daily", key="k")(ballerina)
        recurring(schedule="@daily", key="k")(ballerina)
        assert len([each for each in declared() if each.key == "k"]) == 2

    def test_so_are_other_arguments_at_the_same_place(self):
        for name in ("A", "B"):
            recurring(schedule="@daily", key="k", args=(name,))(greet)
        assert len([each for each in declared() if each.key == "k"]) == 2


class TestRefusals:
    def refuse(self, error, match, decorated=ballerina, **changes):
        known = declared()
        with pytest.raises(error, match=match):
            recurring(**{"schedule": "@daily", "key": "k", **changes})(decorated)
        assert declared() == known

    def test_a_function_that_is_no_task(self):
        self.refuse(TypeError, "no task. It stands above @task", ballerina.func)

    def test_the_wrong_order(self):
        with pytest.raises(TypeError, match="no task"):

            @task
            @recurring(schedule="@daily", key="k")
            def wrong():
                pass

    def test_a_schedule_without_sense(self):
        self.refuse(
            ValueError, r"'61 \* \* \* \*' is no schedule", schedule="61 * * * *"
        )

    def test_a_schedule_that_is_too_long(self):
        text = ",".join(map(str, range(60))) + " " + ",".join(["1"] * 60) + " * * *"
        self.refuse(ValueError, "more than 255", schedule=text)

    @pytest.mark.parametrize("key", ["", "k" * 256, None, 3, " k", "k ", "a\nb", "\0"])
    def test_keys(self, key):
        self.refuse(ValueError, "the key", key=key)

    def test_arguments_that_do_not_fit(self):
        self.refuse(TypeError, r"ballerina\(\): too many", args=(1,))
        self.refuse(TypeError, "missing a required argument: 'name'", greet)
        self.refuse(TypeError, "unexpected keyword", kwargs={"x": 1})

    def test_arguments_that_cannot_be_stored(self):
        self.refuse(SerializationError, r"args\[0\]", greet, args=(object(),))

    def test_a_queue_or_priority_that_is_out_of_range(self):
        for name in ("", "q" * 129, "mail*", "a\0", " mail", 3):
            self.refuse(ValueError, "queue_name", queue_name=name)
        self.refuse(InvalidTask, "priority", priority=1000)

    def test_a_queue_that_the_backend_does_not_have(self, settings):
        settings.TASKS = {
            "default": {**settings.TASKS["default"], "QUEUES": ["default"]}
        }
        self.refuse(InvalidTask, "typo", queue_name="typo")

    def test_a_variation(self):
        self.refuse(TypeError, "variation", greet.using(priority=3), args=("A",))
