"""Recurring tasks that stand in the settings."""

from datetime import timedelta

import pytest
from django.core.checks import run_checks

from robust_queue import recurrence, recurring
from robust_queue.configuration import Configuration, problems
from robust_queue.lifecycle.install import recurrences_of
from tests.testapp.recurring_tasks import ballerina, greet, report

pytestmark = pytest.mark.django_db(databases=["default", "other"])


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(recurrence, "_declared", [])


@pytest.fixture
def timetable(settings):
    """Write this into the settings."""

    def write(**entries):
        settings.ROBUST_QUEUE = {"recurring_tasks": entries}

    return write


def found(*ids):
    return [
        each for each in run_checks() if each.id in {f"robust_queue.{i}" for i in ids}
    ]


class TestWhatIsDeclared:
    def test_with_every_option(self, timetable):
        timetable(
            morning={
                "task": greet.module_path,
                "schedule": timedelta(hours=6),
                "kwargs": {"name": "Alice"},
                "timezone": "Europe/Madrid",
                "on_missed": "run_all",
                "missed_limit": 3,
                "overlap": "skip",
                "jitter": 30,
                "enabled": False,
                "description": "Good morning",
                "queue_name": "urgent",
                "priority": 2,
            }
        )
        (made,) = recurrence.declared()
        assert (made.key, made.task) == ("morning", greet)
        assert (made.schedule.text, made.timezone) == ("every 6 hours", "Europe/Madrid")
        assert made.kwargs == {"name": "Alice"}
        assert (made.on_missed, made.missed_limit) == ("run_all", 3)
        assert (made.overlap, made.jitter) == ("skip", timedelta(seconds=30))
        assert (made.enabled, made.description) == (False, "Good morning")
        assert (made.queue_name, made.priority) == ("urgent", 2)
        assert made.place == "ROBUST_QUEUE['recurring_tasks']['morning']"
        assert found("E010") == []

    def test_as_dataclasses(self, settings):
        settings.ROBUST_QUEUE = Configuration.ConfigurationOptions(
            recurring_tasks={
                "noon": Configuration.RecurringTaskConfiguration(
                    task=ballerina.module_path, schedule="0 12 * * *"
                )
            }
        )
        (made,) = recurrence.declared()
        assert (made.key, made.task) == ("noon", ballerina)

    def test_schedulers_follow_it(self, timetable):
        timetable(noon={"task": report.module_path, "schedule": "@daily"})
        assert [each.key for each in recurrences_of("default")] == ["noon"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("entry", "words"),
        [
            ({"task": "no.such.task", "schedule": "@daily"}, "No task 'no.such.task'"),
            ({"schedule": "whenever"}, "'whenever' is no schedule"),
            ({"schedule": 5}, "5 is no schedule"),
            ({"schedule": "@daily", "args": [1, 2, 3]}, "too many positional"),
            ({"schedule": "@daily", "kwargs": [1]}, "kwargs must be a dict"),
            ({"schedule": "@daily", "timezone": "Mars"}, "Mars"),
            ({"schedule": "@daily", "overlap": "perhaps"}, "overlap"),
        ],
    )
    def test_what_makes_no_sense_is_told_and_left_out(self, timetable, entry, words):
        timetable(
            wrong={"task": report.module_path, **entry},
            right={"task": report.module_path, "schedule": "@daily"},
        )
        (message,) = found("E010")
        assert "ROBUST_QUEUE['recurring_tasks']['wrong']" in message.msg
        assert words in message.msg
        assert [each.key for each in recurrence.declared()] == ["right"]

    @pytest.mark.parametrize(
        ("entry", "words"),
        [
            ({"task": "shop.tasks.report"}, "has no 'schedule'"),
            ({"schedule": "@daily"}, "has no 'task'"),
            ({"task": "report", "schedule": "@daily"}, "dotted path of a task"),
            ({"task": "a.b", "schedule": "@daily", "when": 1}, "is not an option"),
            ({"task": "a.b", "schedule": "@daily", "args": "x"}, "must be a list"),
            ([], "a dict or a RecurringTaskConfiguration"),
        ],
    )
    def test_the_form(self, timetable, entry, words):
        timetable(wrong=entry)
        assert words in " ".join(map(str, problems()))
        assert "ROBUST_QUEUE['recurring_tasks']['wrong']" in str(problems()[0])

    def test_no_dict_at_all(self, settings):
        settings.ROBUST_QUEUE = {"recurring_tasks": ["noon"]}
        assert "a dict of keys" in str(problems()[0])

    def test_a_key_that_code_has_too_names_both_places(self, timetable):
        recurring(schedule="@daily", key="noon")(ballerina)
        timetable(noon={"task": ballerina.module_path, "schedule": "@daily"})
        (message,) = found("E007")
        assert f"{__name__}:" in message.msg
        assert "ROBUST_QUEUE['recurring_tasks']['noon']" in message.msg
