"""Where a value comes from: the setting, the module, the OPTIONS of an alias."""

import os
import subprocess
import sys
from dataclasses import asdict
from datetime import timedelta

import pytest
from django.test import override_settings

import robust_queue
from robust_queue import configuration
from robust_queue.configuration import (
    MODULE_SETTINGS,
    ConfigurationOptions,
    PriorityOrder,
    backend_option_problems,
    backend_options,
    current,
    problems,
)
from robust_queue.exceptions import ConfigurationError
from robust_queue.policies import Policy

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def nothing_configured(settings, monkeypatch):
    settings.ROBUST_QUEUE = None
    for name in MODULE_SETTINGS:
        monkeypatch.delitem(vars(robust_queue), name, raising=False)


@pytest.fixture
def assign(monkeypatch):
    """Assign an attribute of the module, as settings.py may."""
    return lambda name, value: monkeypatch.setitem(vars(robust_queue), name, value)


class TestPrecedence:
    def test_the_setting_outranks_the_module(self, settings, assign):
        assign("shutdown_timeout", 7 * SECOND)
        settings.ROBUST_QUEUE = {"shutdown_timeout": 9}
        assert current().shutdown_timeout == 9 * SECOND

    def test_the_module_outranks_the_default(self, settings, assign):
        assign("shutdown_timeout", 7 * SECOND)
        settings.ROBUST_QUEUE = {"preserve_finished_jobs": False}
        assert current().shutdown_timeout == 7 * SECOND
        assert current().preserve_finished_jobs is False

    def test_a_dataclass_outranks_the_module_only_where_it_was_told(
        self, settings, assign
    ):
        assign("shutdown_timeout", 7 * SECOND)
        assign("supervisor_pidfile", None)
        settings.ROBUST_QUEUE = ConfigurationOptions(shutdown_timeout=5 * SECOND)
        assert current().shutdown_timeout == 5 * SECOND
        assert current().supervisor_pidfile is None

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("process_heartbeat_interval", 2 * SECOND),
            ("process_alive_threshold", 10 * MINUTE),
            ("process_boot_timeout", 10 * MINUTE),
            ("shutdown_timeout", timedelta(0)),
            ("supervisor_pidfile", "/run/queue.pid"),
            ("preserve_finished_jobs", False),
            ("clear_finished_jobs_after", 2 * MINUTE),
            ("clear_failed_jobs_after", 3 * MINUTE),
            ("default_concurrency_control_period", 4 * MINUTE),
            ("on_thread_error", print),
        ],
    )
    def test_the_module_takes_each_of_its_settings(self, assign, name, value):
        assert name in MODULE_SETTINGS
        assert getattr(current(), name) != value
        assign(name, value)
        assert getattr(current(), name) == value

    def test_the_module_takes_seconds(self, assign):
        assign("shutdown_timeout", 10)
        assert current().shutdown_timeout == 10 * SECOND

    def test_the_module_takes_no_nonsense(self, assign):
        assign("shutdown_timeout", "soon")
        [problem] = problems()
        assert problem.path == "robust_queue.shutdown_timeout"
        with pytest.raises(ConfigurationError, match="is 'soon'"):
            current()


class TestModuleAttributes:
    def test_tell_what_holds(self, settings):
        settings.ROBUST_QUEUE = {"shutdown_timeout": 9}
        assert robust_queue.shutdown_timeout == 9 * SECOND
        assert robust_queue.process_heartbeat_interval == 60 * SECOND

    def test_are_only_those_that_may_be_assigned(self):
        with pytest.raises(AttributeError, match="has no attribute 'workers'"):
            configuration.module_attribute("workers")

    def test_tell_the_default_while_settings_are_being_read(self, tmp_path):
        (tmp_path / "early.py").write_text(SETTINGS_THAT_ASK)
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "early"}
        environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])
        told = subprocess.run(
            [sys.executable, "-c", PROGRAM_THAT_TELLS],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.split() == ["0:01:00", "0:02:00", "0:00:07"]


SETTINGS_THAT_ASK = """
import robust_queue
from robust_queue.configuration import Configuration

robust_queue.process_heartbeat_interval = robust_queue.process_heartbeat_interval * 2
ROBUST_QUEUE = Configuration.ConfigurationOptions(shutdown_timeout=7)
"""

PROGRAM_THAT_TELLS = """
import robust_queue
print(robust_queue.process_heartbeat_interval)

from robust_queue.configuration import current
print(current().process_heartbeat_interval, robust_queue.shutdown_timeout)
"""


class TestCurrent:
    def test_is_read_once(self, settings):
        settings.ROBUST_QUEUE = {"shutdown_timeout": 9}
        assert current() is current()

    def test_notices_another_setting(self, settings):
        for seconds in (9, 8, 9):
            settings.ROBUST_QUEUE = {"shutdown_timeout": seconds}
            assert current().shutdown_timeout == seconds * SECOND

    def test_notices_the_same_dict_with_another_content(self, settings):
        setting = {"shutdown_timeout": 9}
        settings.ROBUST_QUEUE = setting
        assert current().shutdown_timeout == 9 * SECOND
        setting["shutdown_timeout"] = 8
        settings.ROBUST_QUEUE = setting
        assert current().shutdown_timeout == 8 * SECOND

    def test_notices_the_end_of_an_override(self):
        with override_settings(ROBUST_QUEUE={"shutdown_timeout": 9}):
            assert current().shutdown_timeout == 9 * SECOND
        assert current().shutdown_timeout == 5 * SECOND

    def test_raises_the_first_problem(self, settings):
        settings.ROBUST_QUEUE = {"workers": [{"threads": 0}], "database": ""}
        with pytest.raises(ConfigurationError, match=r"^ROBUST_QUEUE\['workers'\]"):
            current()


class TestBackendOptions:
    def test_are_those_of_the_setting(self, settings, assign):
        assign("preserve_finished_jobs", False)
        settings.ROBUST_QUEUE = {"max_result_size": 10, "database": "other"}
        assert asdict(backend_options("default", {})) == {
            "database": "other",
            "priority_order": PriorityOrder.SMALLEST_FIRST,
            "max_arguments_size": 1_048_576,
            "max_result_size": 10,
            "transaction_databases": ("default",),
            "preserve_finished_jobs": False,
            "enqueue_on_commit": True,
            "restore_language": False,
            "restore_time_zone": False,
            "task_defaults": asdict(Policy()),
            "queue_defaults": {},
            "queues": {},
        }

    @pytest.mark.parametrize(
        ("name", "value", "kept"),
        [
            ("DATABASE", "other", "other"),
            ("DATABASE", None, None),
            ("PRIORITY_ORDER", "largest_first", PriorityOrder.LARGEST_FIRST),
            ("MAX_ARGUMENTS_SIZE", 1, 1),
            ("MAX_RESULT_SIZE", 2, 2),
            ("TRANSACTION_DATABASES", ["default", "other"], ("default", "other")),
            ("PRESERVE_FINISHED_JOBS", False, False),
            ("RESTORE_LANGUAGE", True, True),
            ("RESTORE_TIME_ZONE", True, True),
            ("ENQUEUE_ON_COMMIT", False, False),
        ],
    )
    def test_win_over_the_setting(self, settings, name, value, kept):
        settings.ROBUST_QUEUE = {"database": "default", "max_result_size": 10}
        options = backend_options("default", {name: value})
        assert getattr(options, name.lower()) == kept

    def test_an_unknown_one_is_refused_with_its_path(self):
        with pytest.raises(ConfigurationError) as refusal:
            backend_options("default", {"PRIORTY_ORDER": "largest_first"})
        assert refusal.value.path == "TASKS['default']['OPTIONS']['PRIORTY_ORDER']"
        assert refusal.value.problem == "is not an option."
        assert refusal.value.cure.startswith(
            "Did you mean 'PRIORITY_ORDER'? The options are DATABASE, PRIORITY_ORDER, "
        )

    def test_small_letters_are_recognised_as_a_slip(self):
        [problem] = backend_option_problems("default", {"database": "other"})
        assert problem.cure.startswith("Did you mean 'DATABASE'? ")

    def test_every_problem_is_told(self):
        options = {"DATABASE": 3, "ENQUEUE_ON_COMMIT": "no", "WORKERS": []}
        assert [problem.path for problem in backend_option_problems("a", options)] == [
            "TASKS['a']['OPTIONS']['DATABASE']",
            "TASKS['a']['OPTIONS']['ENQUEUE_ON_COMMIT']",
            "TASKS['a']['OPTIONS']['WORKERS']",
        ]

    def test_they_are_a_dict(self):
        [problem] = backend_option_problems("default", None)
        assert problem.path == "TASKS['default']['OPTIONS']"
        assert problem.cure == "It must be a dict."

    def test_are_read_once(self):
        options = {"MAX_RESULT_SIZE": 10}
        assert backend_options("a", options) is backend_options("a", options)

    def test_never_go_stale(self, settings, assign):
        options = {"TRANSACTION_DATABASES": ["default"]}
        assert backend_options("a", options).transaction_databases == ("default",)
        options["TRANSACTION_DATABASES"].append("other")
        assert len(backend_options("a", options).transaction_databases) == 2
        assert backend_options("a", {}).transaction_databases == ("default",)
        settings.ROBUST_QUEUE = {"max_result_size": 10}
        assert backend_options("a", options).max_result_size == 10
        assign("preserve_finished_jobs", False)
        assert backend_options("a", options).preserve_finished_jobs is False

    def test_a_problem_of_the_setting_is_told_too(self, settings):
        settings.ROBUST_QUEUE = {"max_result_size": 0}
        with pytest.raises(ConfigurationError, match="max_result_size"):
            backend_options("default", {})
