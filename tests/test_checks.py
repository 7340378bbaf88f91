"""What ``manage.py check`` says, and that it says it once."""

import re
from pathlib import Path

import pytest
from django.core.checks import Error, Tags, run_checks
from django.core.checks.registry import registry

import robust_queue
from robust_queue import checks, recurrence, recurring
from robust_queue.backend import RobustQueueBackend
from robust_queue.checks import (
    check_backend,
    check_configuration,
    check_recurring_tasks,
)
from robust_queue.compat import task_backends
from robust_queue.configuration import (
    MODULE_SETTINGS,
    ConfigurationOptions,
    WorkerConfiguration,
)
from tests.testapp.tasks import note

BACKEND = "robust_queue.backend.RobustQueueBackend"
# Ours need no database, but the checks of Django's models ask MariaDB for its version.
runs_all_checks = pytest.mark.django_db(databases=["default", "other"])
REFERENCE = Path(__file__).parent.parent / "docs" / "reference" / "checks.md"


@pytest.fixture(autouse=True)
def sound(settings, monkeypatch):
    """A project without anything to complain about, on every database."""
    settings.ROBUST_QUEUE = None
    settings.TASKS = {"default": {"BACKEND": BACKEND}}
    for name in MODULE_SETTINGS:
        monkeypatch.delitem(vars(robust_queue), name, raising=False)


def backend(alias="default", queues=("default",), **options):
    return RobustQueueBackend(alias, {"QUEUES": list(queues), "OPTIONS": options})


def ids(messages):
    return [message.id.removeprefix("robust_queue.") for message in messages]


def ours(messages):
    return [each for each in messages if (each.id or "").startswith("robust_queue.")]


@runs_all_checks
class TestSoundProject:
    def test_there_is_nothing_to_say(self):
        assert ours(run_checks()) == []

    def test_nor_about_its_servers(self):
        assert ours(run_checks(databases=["default"], tags=[Tags.database])) == []

    def test_without_a_robust_queue_there_is_nothing_to_judge(self, settings):
        settings.TASKS = {
            "default": {
                "BACKEND": f"{settings.TASKS_PACKAGE}.backends.dummy.DummyBackend"
            }
        }
        assert ours(run_checks()) == []


class TestApp:
    def test_must_be_installed(self, settings):
        remaining = [app for app in settings.INSTALLED_APPS if app != "robust_queue"]
        settings.INSTALLED_APPS = remaining
        [message] = check_backend(backend())
        assert message == Error(
            "TASKS['default'] uses Robust Queue, but its app is not installed.",
            hint="Add 'robust_queue' to INSTALLED_APPS, then run migrate. "
            "See https://robust-queue.readthedocs.io/en/latest/reference/checks.html"
            "#robust-queue-e001",
            id="robust_queue.E001",
        )

    def test_options_are_judged_all_the_same(self, settings):
        settings.INSTALLED_APPS = []
        assert ids(check_backend(backend(WORKERS=3))) == ["E001", "E002"]

    def test_databases_are_not(self, settings):
        settings.INSTALLED_APPS = []
        assert check_configuration() == []


class TestOptions:
    def test_an_unknown_option_of_an_alias(self):
        [message] = check_backend(backend("mail", PRIORTY_ORDER="largest_first"))
        assert message.id == "robust_queue.E002"
        assert message.msg == (
            "TASKS['mail']['OPTIONS']['PRIORTY_ORDER'] is not an option."
        )
        assert message.hint.startswith("Did you mean 'PRIORITY_ORDER'? The options are")

    def test_an_unknown_option_of_the_setting(self, settings):
        settings.ROBUST_QUEUE = {"workers": [{"treads": 5}]}
        [message] = check_configuration()
        assert message.id == "robust_queue.E002"
        assert message.msg == "ROBUST_QUEUE['workers'][0]['treads'] is not an option."

    def test_a_senseless_option_of_an_alias(self):
        [message] = check_backend(backend(MAX_RESULT_SIZE=0))
        assert message.id == "robust_queue.E003"
        assert message.msg == "TASKS['default']['OPTIONS']['MAX_RESULT_SIZE'] is 0."
        assert message.hint.startswith("It must be a whole number of at least 1. See ")

    def test_senseless_options_of_setting_and_module(self, settings, monkeypatch):
        settings.ROBUST_QUEUE = {"workers": [{"threads": 0}], "database": 3}
        monkeypatch.setitem(vars(robust_queue), "shutdown_timeout", "soon")
        messages = check_configuration()
        assert ids(messages) == ["E003"] * 3
        assert [message.msg for message in messages] == [
            "ROBUST_QUEUE['workers'][0]['threads'] is 0.",
            "ROBUST_QUEUE['database'] is 3.",
            "robust_queue.shutdown_timeout is 'soon'.",
        ]

    def test_options_that_are_no_dict(self):
        strange = RobustQueueBackend("default", {"OPTIONS": ["DATABASE"]})
        assert ids(check_backend(strange)) == ["E003"]


class TestMissingDatabases:
    def test_named_by_an_alias(self):
        messages = check_backend(
            backend(DATABASE="nowhere", TRANSACTION_DATABASES=["default", "neither"])
        )
        assert ids(messages) == ["E004", "E004"]
        assert messages[0].msg == (
            "TASKS['default']['OPTIONS']['DATABASE'] names the database 'nowhere',"
            " which DATABASES does not have."
        )
        assert messages[0].hint.startswith("Choose one of 'default', 'other', or add")
        assert "['TRANSACTION_DATABASES'] names" in messages[1].msg

    @pytest.mark.parametrize(
        ("setting", "path"),
        [
            ({"database": "nowhere"}, "ROBUST_QUEUE['database']"),
            (ConfigurationOptions(database="nowhere"), "ROBUST_QUEUE.database"),
            (
                {"transaction_databases": ["nowhere"]},
                "ROBUST_QUEUE['transaction_databases']",
            ),
        ],
    )
    @runs_all_checks
    def test_named_by_the_setting(self, settings, setting, path):
        settings.ROBUST_QUEUE = setting
        [message] = ours(run_checks())
        assert message.id == "robust_queue.E004"
        assert message.msg.startswith(f"{path} names the database 'nowhere'")


class TestQueues:
    def test_a_pattern_that_is_ignored(self, settings):
        settings.ROBUST_QUEUE = {"workers": [{}, {"queues": ["a", "*_x", "a*b"]}]}
        first, second = check_configuration()
        assert first.id == second.id == "robust_queue.W003"
        assert first.msg == (
            "ROBUST_QUEUE['workers'][1] asks for the queues '*_x',"
            " which are never served."
        )
        assert first.hint.startswith("A '*' may stand alone or at the end of a name")
        assert "'a*b'" in second.msg

    def test_queues_that_no_worker_serves(self, settings):
        settings.ROBUST_QUEUE = ConfigurationOptions(
            workers=[WorkerConfiguration(queues=["mail*", "*port"])]
        )
        [message] = check_backend(backend(queues=["report", "default", "mailing"]))
        assert message.id == "robust_queue.W004"
        assert message.msg == (
            "TASKS['default'] accepts jobs that no worker takes, in the queues"
            " 'default', 'report'."
        )
        assert message.hint.startswith("Add them to the queues of a worker")

    @pytest.mark.parametrize(
        "workers", [None, [], [{}], [{"queues": "mail"}, {"queues": "report"}]]
    )
    def test_queues_that_are_served_or_left_to_others(self, settings, workers):
        settings.ROBUST_QUEUE = {"workers": workers}
        assert check_backend(backend(queues=["mail", "report"])) == []

    def test_an_alias_that_takes_any_queue(self, settings):
        settings.ROBUST_QUEUE = {"workers": [{"queues": "mail"}]}
        assert check_backend(backend(queues=[])) == []


class TestRecurringTasks:
    @pytest.fixture(autouse=True)
    def nothing_declared(self, monkeypatch):
        monkeypatch.setattr(recurrence, "_declared", [])

    def test_a_key_that_is_declared_at_two_places(self):
        recurring(schedule="@daily", key="again")(note)
        recurring(schedule="@daily", key="once")(note)
        recurring(schedule="@hourly", key="again")(note)
        first, _, second = (each.place for each in recurrence.declared())
        [message] = check_recurring_tasks()
        assert message.id == "robust_queue.E007"
        assert message.msg == (
            f"The recurring tasks of {first} and {second} have the same key, 'again'."
        )
        assert first.startswith(f"{__name__}:")
        assert first != second
        assert message.hint.startswith("Give each of them a key of its own")

    def test_the_same_declaration_again(self):
        for _ in range(2):
            recurring(schedule="@daily", key="again")(note)
        assert check_recurring_tasks() == []

    def test_a_setting_that_cannot_be_read_is_reported_elsewhere(self, settings):
        settings.ROBUST_QUEUE = {"task_modules": 3}
        assert check_recurring_tasks() == []

    @runs_all_checks
    def test_django_asks(self):
        recurring(schedule="@daily", key="again")(note)
        recurring(schedule="@hourly", key="again")(note)
        assert ids(ours(run_checks())) == ["E007"]


@runs_all_checks
class TestHandlerOfErrors:
    @pytest.mark.parametrize("said", [None, print, "builtins.print"])
    def test_one_that_is_there_is_fine(self, settings, said):
        settings.ROBUST_QUEUE = {"on_thread_error": said}
        assert ids(check_configuration()) == []

    @pytest.mark.parametrize(
        ("said", "cause"),
        [
            ("shop.errors.tell", "No module named 'shop'"),
            ("math.tell", 'Module "math" does not define a "tell" attribute/class'),
            ("math.pi", "'math.pi' is 3.14"),
        ],
    )
    def test_a_path_to_nowhere_is_told(self, settings, said, cause):
        settings.ROBUST_QUEUE = {"on_thread_error": said}
        [message] = check_configuration()
        assert message.id == "robust_queue.E008"
        path = "ROBUST_QUEUE['on_thread_error'] leads nowhere: "
        assert message.msg.startswith(path + cause)


@runs_all_checks
class TestRedactor:
    @pytest.mark.parametrize("said", [None, print, "builtins.print"])
    def test_one_that_is_there_is_fine(self, settings, said):
        settings.ROBUST_QUEUE = {"redact_with": said}
        assert ids(check_configuration()) == []

    @pytest.mark.parametrize("said", ["shop.secrets.hide", "math.pi", "asyncio.sleep"])
    def test_a_path_to_nowhere_is_told(self, settings, said):
        settings.ROBUST_QUEUE = {"redact_with": said}
        [message] = check_configuration()
        assert message.id == "robust_queue.E011"
        path = "ROBUST_QUEUE['redact_with'] leads nowhere: "
        assert message.msg.startswith(path)


@runs_all_checks
class TestPartitions:
    @pytest.mark.parametrize("by", [None, "tenant", max, "builtins.max"])
    def test_what_can_be_found_is_fine(self, settings, by):
        settings.ROBUST_QUEUE = {"queues": {"imports": {"partition_by": by}}}
        assert ids(check_configuration()) == []

    @pytest.mark.parametrize(
        ("by", "cause"),
        [
            ("shop.tenants.of", "No module named 'shop'"),
            ("math.tell", 'Module "math" does not define a "tell" attribute/class'),
            ("math.pi", "math.pi is no function"),
            ("asyncio.sleep", "asyncio.sleep is no function"),
        ],
    )
    def test_a_path_to_nowhere_is_told(self, settings, by, cause):
        queues = {"imports": {"partition_by": by}}
        settings.ROBUST_QUEUE = {"queues": queues}
        [message] = check_configuration()
        assert message.id == "robust_queue.E009"
        path = "ROBUST_QUEUE['queues']['imports']['partition_by'] leads nowhere: "
        assert message.msg.startswith(path + cause)

    def test_so_it_is_in_the_options_of_an_alias(self, settings):
        queues = {"imports": {"partition_by": "math.pi"}}
        options = {"BACKEND": BACKEND, "OPTIONS": {"QUEUES": queues}}
        settings.TASKS = {"default": options}
        messages = [each.msg for each in check_configuration()]
        messages += [each.msg for each in task_backends["default"].check()]
        path = "TASKS['default']['OPTIONS']['QUEUES']['imports']['partition_by']"
        assert [each for each in messages if each.startswith(path)]


class TestEverythingIsSaidOnce:
    @pytest.fixture(autouse=True)
    def unsound(self, settings, sound):
        settings.TASKS = {
            "default": {"BACKEND": BACKEND, "OPTIONS": {"WORKERS": 3}},
            "second": {"BACKEND": f"{__name__}.Heir", "OPTIONS": {"THREADS": 3}},
        }

    def said(self):
        return sorted(message.msg for message in ours(run_checks()))

    expected = [
        "TASKS['default']['OPTIONS']['WORKERS'] is not an option.",
        "TASKS['second']['OPTIONS']['THREADS'] is not an option.",
    ]

    def test_by_the_framework_and_ours_together(self):
        assert self.said() == self.expected

    def test_by_ours_alone_where_the_framework_does_not_ask(self, monkeypatch):
        framework = type(task_backends).__module__ + ".checks"
        others = {
            each for each in registry.registered_checks if each.__module__ != framework
        }
        monkeypatch.setattr(registry, "registered_checks", others)
        assert self.said() == self.expected

    def test_registering_again_changes_nothing(self):
        before = set(registry.registered_checks)
        checks.register_checks()
        assert registry.registered_checks == before


class Heir(RobustQueueBackend):
    """Somebody's own backend on top of ours."""


@pytest.mark.parametrize("queues", [[1], [None], ["a", 2.5]])
def test_queues_that_are_not_named_with_text(settings, queues):
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": queues}}
    found = [message.id for message in check_backend(task_backends["default"])]
    assert found == ["robust_queue.E003"]


def test_every_id_has_its_section_in_the_reference():
    source = Path(checks.messages.__file__).read_text()
    reference = REFERENCE.read_text()
    numbers = sorted(set(re.findall(r'"([EW]\d{3})"', source)))
    assert len(numbers) == 23
    for number in numbers:
        assert f"(robust-queue-{number.lower()})=" in reference
        assert f"robust_queue.{number}" in reference
