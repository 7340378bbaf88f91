"""The dataclasses and dicts of the setting: their defaults and what they mean."""

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, replace
from datetime import timedelta
from pathlib import Path

import pytest

import robust_queue
from robust_queue.configuration import (
    MODULE_SETTINGS,
    Configuration,
    ConfigurationOptions,
    DispatcherConfiguration,
    PriorityOrder,
    WorkerConfiguration,
    current,
    problems,
)
from robust_queue.exceptions import ConfigurationError
from robust_queue.policies import Policy
from robust_queue.redaction import SENSITIVE_KEYS

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


class TestDefaults:
    def test_of_a_worker(self):
        worker = WorkerConfiguration()
        assert asdict(worker) == {
            "queues": ("*",),
            "threads": 3,
            "coroutines": 100,
            "processes": 1,
            "polling_interval": timedelta(seconds=0.1),
            "max_tasks": None,
            "max_rss": None,
            "isolation": "thread",
            "isolated": None,
            "memory_limit": None,
            "cpu_limit": None,
        }

    def test_of_a_dispatcher(self):
        assert asdict(DispatcherConfiguration()) == {
            "polling_interval": SECOND,
            "batch_size": 500,
            "concurrency_maintenance": True,
            "concurrency_maintenance_interval": 600 * SECOND,
        }

    def test_of_everything_else(self):
        values = asdict(ConfigurationOptions())
        values.pop("_given")
        assert values == {
            "mode": "fork",
            "workers": None,
            "dispatchers": None,
            "process_heartbeat_interval": 60 * SECOND,
            "process_alive_threshold": 5 * MINUTE,
            "process_boot_timeout": 5 * MINUTE,
            "shutdown_timeout": 5 * SECOND,
            "supervisor_pidfile": "tmp/pids/robust_queue_supervisor.pid",
            "notifications": True,
            "preserve_finished_jobs": True,
            "clear_finished_jobs_after": timedelta(days=1),
            "clear_failed_jobs_after": None,
            "default_concurrency_control_period": 3 * MINUTE,
            "task_modules": (),
            "database": None,
            "priority_order": "smallest_first",
            "max_arguments_size": 1_048_576,
            "max_result_size": 1_048_576,
            "transaction_databases": ("default",),
            "enqueue_on_commit": True,
            "restore_language": False,
            "restore_time_zone": False,
            "task_defaults": asdict(Policy()),
            "queue_defaults": {},
            "queues": {},
            "recurring_tasks": {},
            "recurring_grace": MINUTE,
            "retire_recurring_tasks_after": timedelta(hours=1),
            "clear_recurring_executions_after": timedelta(days=30),
            "timeout_grace": timedelta(seconds=5),
            "on_thread_error": None,
            "redact": SENSITIVE_KEYS,
            "redact_with": None,
            "admin_read_only": False,
            "api_sessions": False,
            "api_requests_per_minute": 6_000,
            "api_longest_wait": timedelta(seconds=20),
        }

    def test_hold_where_nothing_is_configured(self, settings):
        del settings.ROBUST_QUEUE
        assert current() == ConfigurationOptions()
        assert problems() == []

    def test_one_worker_and_one_dispatcher_run(self):
        assert current().effective_workers == (WorkerConfiguration(),)
        assert current().effective_dispatchers == (DispatcherConfiguration(),)

    def test_an_empty_list_runs_none(self, settings):
        settings.ROBUST_QUEUE = {"workers": [], "dispatchers": []}
        assert current().effective_workers == ()
        assert current().effective_dispatchers == ()


class TestForms:
    expected = ConfigurationOptions(
        workers=[WorkerConfiguration(queues=["mail", "*"], threads=5)],
        dispatchers=[DispatcherConfiguration(batch_size=50)],
        shutdown_timeout=30 * SECOND,
    )

    @pytest.mark.parametrize(
        "form",
        [
            Configuration.ConfigurationOptions(
                workers=[
                    Configuration.WorkerConfiguration(queues=["mail", "*"], threads=5)
                ],
                dispatchers=[Configuration.DispatcherConfiguration(batch_size=50)],
                shutdown_timeout=timedelta(seconds=30),
            ),
            {
                "workers": [{"queues": ["mail", "*"], "threads": 5}],
                "dispatchers": [{"batch_size": 50}],
                "shutdown_timeout": 30,
            },
            {
                "workers": [WorkerConfiguration(queues=("mail", "*"), threads=5)],
                "dispatchers": ({"batch_size": 50},),
                "shutdown_timeout": 30.0,
            },
            ConfigurationOptions(
                workers=[{"queues": ["mail", "*"], "threads": 5}],
                dispatchers=[{"batch_size": 50}],
                shutdown_timeout=30,
            ),
        ],
        ids=["dataclasses", "dicts", "dataclass in dict", "dict in dataclass"],
    )
    def test_say_the_same(self, settings, form):
        settings.ROBUST_QUEUE = form
        assert current() == self.expected

    def test_values_are_kept_in_one_form(self):
        options = ConfigurationOptions(
            clear_failed_jobs_after=90,
            supervisor_pidfile=Path("run") / "queue.pid",
            priority_order="largest_first",
            transaction_databases="default",
            task_modules=["shop.jobs"],
        )
        assert options.clear_failed_jobs_after == 90 * SECOND
        assert options.supervisor_pidfile == "run/queue.pid"
        assert options.priority_order is PriorityOrder.LARGEST_FIRST
        assert options.transaction_databases == ("default",)
        assert options.task_modules == ("shop.jobs",)

    def test_a_pidfile_can_be_switched_off(self):
        assert ConfigurationOptions(supervisor_pidfile=None).supervisor_pidfile is None

    def test_a_shutdown_need_not_wait(self):
        assert ConfigurationOptions(shutdown_timeout=0).shutdown_timeout == timedelta(0)

    def test_options_cannot_be_changed(self):
        with pytest.raises(FrozenInstanceError):
            WorkerConfiguration().threads = 5

    @pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, replace])
    def test_options_can_be_copied(self, duplicate):
        assert duplicate(self.expected) == self.expected
        assert hash(duplicate(self.expected)) == hash(self.expected)

    def test_options_can_be_pickled(self, settings):
        settings.ROBUST_QUEUE = pickle.loads(pickle.dumps(self.expected))  # noqa: S301
        assert current() == self.expected


class TestHeartbeats:
    def test_a_slower_heart_is_given_more_time(self, assign):
        assign("process_heartbeat_interval", 5 * MINUTE)
        assert current().process_alive_threshold == 25 * MINUTE

    def test_a_threshold_that_was_given_stays(self, settings, assign):
        assign("process_heartbeat_interval", 5 * MINUTE)
        settings.ROBUST_QUEUE = {"process_alive_threshold": 901}
        assert current().process_alive_threshold == 901 * SECOND

    def test_three_heartbeats_are_enough(self):
        options = ConfigurationOptions(process_alive_threshold=180)
        assert options.process_alive_threshold == 3 * MINUTE

    # 70: a healthy process would stop trusting itself before its next heartbeat.
    @pytest.mark.parametrize("seconds", [60, 70, 179])
    def test_a_dataclass_refuses_to_be_impatient(self, seconds):
        with pytest.raises(ConfigurationError) as refusal:
            ConfigurationOptions(process_alive_threshold=seconds)
        assert refusal.value.path == "ConfigurationOptions.process_alive_threshold"
        assert refusal.value.problem == (
            f"is {seconds * SECOND}, less than 3 times process_heartbeat_interval, "
            "0:01:00: processes that are well would be taken for dead."
        )
        assert refusal.value.cure == (
            "Allow for at least 0:03:00, or shorten process_heartbeat_interval."
        )

    @pytest.mark.parametrize(
        ("setting", "assigned", "path"),
        [
            ({"process_alive_threshold": 9}, {}, "ROBUST_QUEUE['{}']"),
            ({}, {"process_alive_threshold": 9}, "robust_queue.{}"),
            (
                ConfigurationOptions(process_alive_threshold=199),
                {"process_heartbeat_interval": 99},
                "ROBUST_QUEUE.{}",
            ),
        ],
    )
    def test_so_does_whatever_is_put_together(
        self, settings, assign, setting, assigned, path
    ):
        settings.ROBUST_QUEUE = setting
        for name, value in assigned.items():
            assign(name, value)
        [problem] = problems()
        assert problem.path == path.format("process_alive_threshold")
