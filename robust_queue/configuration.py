"""Settings: the only reader of ``ROBUST_QUEUE`` and of attributes set on the package.

A value is looked up in the setting, then on the module ``robust_queue``, then among
the defaults below. ``settings.py`` may import this module: a dataclass refuses nonsense
when it is made, a plain dict when it is read, so that a system check can report it.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple, Self

from django.conf import settings
from django.core.signals import setting_changed

from robust_queue.defaults import QueueDefaults, TaskDefaults
from robust_queue.exceptions import ConfigurationError
from robust_queue.flow.queues import QueueConfiguration, QueueConfigurations
from robust_queue.policies import Policy
from robust_queue.recurring_settings import RecurringTaskConfiguration, Timetable
from robust_queue.redaction import SENSITIVE_KEYS, HookOrNone, SensitiveKeys
from robust_queue.roles import (
    DispatcherConfiguration,
    Dispatchers,
    WorkerConfiguration,
    Workers,
)
from robust_queue.rules import (
    Age,
    AgeOrNever,
    Count,
    CountOrNone,
    Database,
    Databases,
    File,
    Flag,
    Handler,
    Interval,
    Mode,
    Modules,
    Order,
    PriorityOrder,
    Problems,
    RunMode,
    dict_problems,
    form_problems,
    normalise,
    raise_first,
    rules_of,
    silence_problems,
)
from robust_queue.sources import MODULE_SETTINGS, assigned, setting, setting_place

__all__ = [
    "MODULE_SETTINGS",
    "BackendOptions",
    "Configuration",
    "ConfigurationOptions",
    "DispatcherConfiguration",
    "PriorityOrder",
    "QueueConfiguration",
    "RecurringTaskConfiguration",
    "RunMode",
    "WorkerConfiguration",
    "backend_option_problems",
    "backend_options",
    "current",
    "module_attribute",
    "options_path",
    "path_of",
    "problems",
]

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationOptions:
    """Everything that ``ROBUST_QUEUE`` may say."""

    mode: Mode = RunMode.FORK
    workers: Workers = None
    dispatchers: Dispatchers = None
    process_heartbeat_interval: Interval = timedelta(seconds=60)
    process_alive_threshold: Interval = timedelta(minutes=5)
    process_boot_timeout: Interval = timedelta(minutes=5)
    shutdown_timeout: Age = timedelta(seconds=5)
    supervisor_pidfile: File = "tmp/pids/robust_queue_supervisor.pid"
    notifications: Flag = True
    preserve_finished_jobs: Flag = True
    clear_finished_jobs_after: Age = timedelta(days=1)
    clear_failed_jobs_after: AgeOrNever = None
    default_concurrency_control_period: Interval = timedelta(minutes=3)
    task_modules: Modules = ()
    database: Database = None
    priority_order: Order = PriorityOrder.SMALLEST_FIRST
    max_arguments_size: Count = 1024 * 1024
    max_result_size: Count = 1024 * 1024
    transaction_databases: Databases = ("default",)
    enqueue_on_commit: Flag = True
    restore_language: Flag = False
    restore_time_zone: Flag = False
    task_defaults: TaskDefaults = field(default_factory=Policy)
    queue_defaults: QueueDefaults = field(default_factory=dict, hash=False)
    queues: QueueConfigurations = field(default_factory=dict, hash=False)
    recurring_tasks: Timetable = field(default_factory=dict, hash=False)
    recurring_grace: Interval = timedelta(minutes=1)
    retire_recurring_tasks_after: Interval = timedelta(hours=1)
    clear_recurring_executions_after: Age = timedelta(days=30)
    timeout_grace: Interval = timedelta(seconds=5)
    on_thread_error: Handler = None
    redact: SensitiveKeys = SENSITIVE_KEYS
    redact_with: HookOrNone = None
    admin_read_only: Flag = False
    api_sessions: Flag = False
    api_requests_per_minute: CountOrNone = 6_000
    api_longest_wait: Interval = timedelta(seconds=20)
    _given: frozenset[str] = field(init=False, repr=False, compare=False)

    def __new__(cls, **given: Any) -> Self:
        # Only what was given, never a default, may outrank an attribute of the module.
        options = object.__new__(cls)
        object.__setattr__(options, "_given", frozenset(given))
        return options

    def __post_init__(self) -> None:
        normalise(self)
        pause, threshold = self.process_heartbeat_interval, self.process_alive_threshold
        if "process_alive_threshold" not in self._given:
            # Whoever slows the heart down and says no more must not lose processes.
            threshold = max(threshold, 5 * pause)
            object.__setattr__(self, "process_alive_threshold", threshold)
        path = "ConfigurationOptions.process_alive_threshold"
        raise_first(silence_problems(path, threshold, heartbeat=pause))

    @property
    def effective_workers(self) -> Sequence[WorkerConfiguration]:
        """The workers to run; one with the defaults where nothing was said."""
        return (WorkerConfiguration(),) if self.workers is None else self.workers

    @property
    def effective_dispatchers(self) -> Sequence[DispatcherConfiguration]:
        """The dispatchers to run; one with the defaults where nothing was said."""
        said = self.dispatchers
        return (DispatcherConfiguration(),) if said is None else said


class Configuration:
    """The dataclasses under one name, for ``settings.py``."""

    ConfigurationOptions = ConfigurationOptions
    WorkerConfiguration = WorkerConfiguration
    DispatcherConfiguration = DispatcherConfiguration
    QueueConfiguration = QueueConfiguration
    RecurringTaskConfiguration = RecurringTaskConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOptions:
    """What holds for one alias of ``TASKS``: its OPTIONS, else the setting."""

    database: Database
    priority_order: Order
    max_arguments_size: Count
    max_result_size: Count
    transaction_databases: Databases
    preserve_finished_jobs: Flag
    enqueue_on_commit: Flag
    restore_language: Flag
    restore_time_zone: Flag
    task_defaults: TaskDefaults
    queue_defaults: QueueDefaults = field(hash=False)
    queues: QueueConfigurations = field(hash=False)

    def __post_init__(self) -> None:
        normalise(self)


def current() -> ConfigurationOptions:
    """Return the configuration in force; cheap, so ask again rather than keep it."""
    return _in_force().options


def problems() -> list[ConfigurationError]:
    """Return everything wrong with the setting and the attributes of the module."""
    try:
        _in_force()
    except ConfigurationError as conflict:
        return list(_problems_of(setting(), assigned())) or [conflict]
    return []


def path_of(name: str) -> str:
    """Return where an option was written, as messages name it."""
    if name in assigned() and name not in _given(setting()):
        return f"robust_queue.{name}"
    dotted = isinstance(setting(), ConfigurationOptions)
    return setting_place() + (f".{name}" if dotted else f"[{name!r}]")


def module_attribute(name: str) -> Any:
    """Return what ``robust_queue.<name>`` is worth where nobody assigned it."""
    if name not in MODULE_SETTINGS:
        raise AttributeError(f"module 'robust_queue' has no attribute {name!r}")
    # settings.py itself may ask, and must not be imported again because of that.
    return getattr(current() if settings.configured else ConfigurationOptions(), name)


def backend_options(alias: str, options: Values) -> BackendOptions:
    """Return what holds for an alias of ``TASKS`` that has these OPTIONS."""
    in_force = _in_force()
    seen, result = in_force.backends.get(alias, (None, None))
    if result is None or seen != options:
        raise_first(backend_option_problems(alias, options))
        result = _overridden(in_force.options, options)
        # A copy, so that the comparison notices an edit of OPTIONS in place.
        in_force.backends[alias] = deepcopy(options), result
    return result


def backend_option_problems(alias: str, options: Values) -> list[ConfigurationError]:
    """Return everything wrong with the OPTIONS of an alias of ``TASKS``."""
    rules = {name.upper(): rule for name, rule in rules_of(BackendOptions).items()}
    return list(dict_problems(options_path(alias), options, rules))


def options_path(alias: str) -> str:
    """Return how messages name the OPTIONS of an alias of ``TASKS``."""
    return f"TASKS[{alias!r}]['OPTIONS']"


class _InForce(NamedTuple):
    setting: Any
    assigned: dict[str, Any]
    options: ConfigurationOptions
    backends: dict[str, tuple[Values, BackendOptions]]


_latest: list[_InForce] = []


def _in_force() -> _InForce:
    said, also = setting(), assigned()
    for known in _latest:
        if known.setting is said and known.assigned == also:
            return known
    raise_first(_problems_of(said, also))
    fresh = _InForce(said, also, _merged(said, also), {})
    _latest[:] = [fresh]
    return fresh


def _forget(*, setting: str, **kwargs: Any) -> None:
    # The same dict may come back with other contents.
    if setting == "ROBUST_QUEUE":
        _latest.clear()


setting_changed.connect(_forget, dispatch_uid="robust_queue.configuration")


def _given(said: Any) -> Values:
    if isinstance(said, ConfigurationOptions):
        return {name: getattr(said, name) for name in said._given}
    return said if isinstance(said, Mapping) else {}


def _problems_of(said: Any, also: Values) -> Problems:
    if said is not None:
        yield from form_problems(setting_place(), said, ConfigurationOptions)
    for name, value in also.items():
        rule = rules_of(ConfigurationOptions)[name]
        yield from rule.problems(f"robust_queue.{name}", value)


def _merged(said: Any, also: Values) -> ConfigurationOptions:
    try:
        return ConfigurationOptions(**{**also, **_given(said)})
    except ConfigurationError as conflict:
        path = path_of(conflict.path.rpartition(".")[2])
        raise ConfigurationError(path, conflict.problem, conflict.cure) from None


def _overridden(defaults: ConfigurationOptions, options: Values) -> BackendOptions:
    values = {name: getattr(defaults, name) for name in rules_of(BackendOptions)}
    values |= {name.lower(): value for name, value in options.items()}
    return BackendOptions(**values)
