"""What options accept, and what is said about what they do not."""

import asyncio
import math
from datetime import timedelta

import pytest

from robust_queue.configuration import (
    ConfigurationOptions,
    DispatcherConfiguration,
    PriorityOrder,
    WorkerConfiguration,
    problems,
)
from robust_queue.exceptions import ConfigurationError
from robust_queue.flow.queues import QueueConfiguration
from robust_queue.rules import UnknownOptionError

INTERVAL = "It must be a timedelta or a number of seconds, longer than zero."
AGE = "It must be a timedelta or a number of seconds, not negative."
COUNT = "It must be a whole number of at least 1."
CREW = "It must be a whole number from 1 to 10,000."
KEYS = "It must be a list of names such as 'password'; [] for none."
REDACTOR = (
    "It must be a function of (task_path, args, kwargs), its dotted path, or None."
)
HANDLER = "It must be a function that takes an exception, its dotted path, or None."


class TestQueues:
    def test_a_single_name_will_do(self):
        assert WorkerConfiguration(queues="mail").queues == ("mail",)

    def test_patterns_that_cannot_match_are_set_aside(self):
        worker = WorkerConfiguration(queues=["b*", "*_x", "a", "a*b", "**", "*"])
        assert worker.patterns == ("b*", "a", "*")
        assert worker.ignored_patterns == ("*_x", "a*b", "**")

    @pytest.mark.parametrize(
        ("queues", "name", "served"),
        [
            ("*", "mail", True),
            ("mail", "mail", True),
            ("mail", "mailing", False),
            ("mail*", "mailing", True),
            ("mail*", "e-mail", False),
            ("*mail", "mail", False),
            (["a", "b*"], "bulk", True),
        ],
    )
    def test_a_worker_knows_what_it_serves(self, queues, name, served):
        assert WorkerConfiguration(queues=queues).serves(name) is served


class TestPriorityOrder:
    def test_rank_sorts_ascending(self):
        assert PriorityOrder.SMALLEST_FIRST.rank(7) == 7
        assert PriorityOrder.LARGEST_FIRST.rank(7) == -7

    @pytest.mark.parametrize("order", PriorityOrder)
    def test_the_rank_of_a_rank_is_the_priority(self, order):
        assert [order.rank(order.rank(n)) for n in (-100, 0, 100)] == [-100, 0, 100]


class TestNonsense:
    @pytest.mark.parametrize("kind", [WorkerConfiguration, DispatcherConfiguration])
    @pytest.mark.parametrize(
        "value",
        [
            0,
            -1,
            timedelta(seconds=-1),
            1e-9,
            True,
            math.nan,
            math.inf,
            10**20,
            "1",
            None,
            [1],
        ],
    )
    def test_an_interval_refuses(self, kind, value):
        with pytest.raises(ConfigurationError) as refusal:
            kind(polling_interval=value)
        assert refusal.value.path == f"{kind.__name__}.polling_interval"
        assert refusal.value.problem == f"is {value!r}."
        assert refusal.value.cure == INTERVAL

    @pytest.mark.parametrize("name", ["threads", "processes"])
    @pytest.mark.parametrize("value", [0, -1, 10_001, True, 2.0, "2", None])
    def test_a_number_of_something_refuses(self, name, value):
        with pytest.raises(ConfigurationError, match=f"{name}: is .* {CREW}"):
            WorkerConfiguration(**{name: value})

    @pytest.mark.parametrize("value", [-1, 10_001, True, 2.0, "2", None])
    def test_a_number_that_may_be_zero_refuses(self, value):
        with pytest.raises(ConfigurationError, match="a whole number from 0 to 10,000"):
            WorkerConfiguration(coroutines=value)
        assert WorkerConfiguration(coroutines=0).coroutines == 0

    @pytest.mark.parametrize("value", [[], [""], [" "], [1], None, {"a"}, 3, ""])
    def test_queues_refuse(self, value):
        with pytest.raises(ConfigurationError, match="at least one queue name"):
            WorkerConfiguration(queues=value)

    @pytest.mark.parametrize(
        ("name", "value", "cure"),
        [
            ("shutdown_timeout", -1, AGE),
            ("clear_finished_jobs_after", None, AGE),
            ("clear_failed_jobs_after", "1 day", f"{AGE[:-1]}, or None."),
            ("preserve_finished_jobs", 1, "It must be True or False."),
            ("enqueue_on_commit", "no", "It must be True or False."),
            ("supervisor_pidfile", "", "It must be the path of a file, or None."),
            ("supervisor_pidfile", 3, "It must be the path of a file, or None."),
            (
                "task_modules",
                ["shop jobs"],
                "It must be a list of dotted module names.",
            ),
            ("task_modules", 3, "It must be a list of dotted module names."),
            ("task_modules", [None], "It must be a list of dotted module names."),
            ("database", "", "It must be an alias of DATABASES, or None."),
            (
                "transaction_databases",
                None,
                "It must be a list of aliases of DATABASES.",
            ),
            ("restore_language", "de", "It must be True or False."),
            ("restore_time_zone", 1, "It must be True or False."),
            ("on_thread_error", "tell", HANDLER),
            ("on_thread_error", "shop.the errors", HANDLER),
            ("on_thread_error", 3, HANDLER),
            ("on_thread_error", asyncio.sleep, HANDLER),
            ("redact", "password", KEYS),
            ("redact", None, KEYS),
            ("redact", ["password", 3], KEYS),
            ("redact", ["--"], KEYS),
            ("redact_with", "hide", REDACTOR),
            ("redact_with", 3, REDACTOR),
            ("redact_with", asyncio.sleep, REDACTOR),
            ("max_arguments_size", 0, COUNT),
            ("max_result_size", 1e6, COUNT),
            ("priority_order", "up", "It must be 'smallest_first' or 'largest_first'."),
            ("workers", 3, "It must be a list, or None for the defaults."),
            ("dispatchers", {}, "It must be a list, or None for the defaults."),
        ],
    )
    def test_every_option_says_what_it_wants(self, settings, name, value, cure):
        with pytest.raises(ConfigurationError) as refusal:
            ConfigurationOptions(**{name: value})
        settings.ROBUST_QUEUE = {name: value}
        [problem] = problems()
        assert refusal.value.path == f"ConfigurationOptions.{name}"
        assert problem.path == f"ROBUST_QUEUE[{name!r}]"
        assert refusal.value.problem == problem.problem == f"is {value!r}."
        assert refusal.value.cure == problem.cure == cure


class TestUnknownNames:
    def test_are_named_with_their_full_path_and_a_guess(self, settings):
        settings.ROBUST_QUEUE = {"workers": [{}, {"treads": 3}]}
        [problem] = problems()
        assert isinstance(problem, UnknownOptionError)
        assert problem.path == "ROBUST_QUEUE['workers'][1]['treads']"
        assert problem.problem == "is not an option."
        assert problem.cure == (
            "Did you mean 'threads'?"
            " The options are queues, threads, coroutines, processes,"
            " polling_interval, max_tasks, max_rss,"
            " isolation, isolated, memory_limit, cpu_limit."
        )

    def test_no_guess_is_made_where_nothing_is_similar(self, settings):
        settings.ROBUST_QUEUE = {"dispatchers": [{"zzz": 1}]}
        [problem] = problems()
        assert problem.cure.startswith("The options are polling_interval, batch_size,")

    @pytest.mark.parametrize("name", ["_given", "SHUTDOWN_TIMEOUT", 3, None])
    def test_nothing_else_is_an_option(self, settings, name):
        settings.ROBUST_QUEUE = {name: 5}
        [problem] = problems()
        assert problem.path == f"ROBUST_QUEUE[{name!r}]"
        assert problem.problem == "is not an option."

    def test_a_dataclass_refuses_them_as_python_does(self):
        with pytest.raises(TypeError, match="treads"):
            WorkerConfiguration(treads=3)


class TestForms:
    @pytest.mark.parametrize("form", [[], "x", 3, WorkerConfiguration()])
    def test_the_setting_is_a_dict_or_a_dataclass(self, settings, form):
        settings.ROBUST_QUEUE = form
        [problem] = problems()
        assert problem.path == "ROBUST_QUEUE"
        assert problem.cure == "It must be a dict or a ConfigurationOptions."

    @pytest.mark.parametrize("form", [None, 3, "mail", DispatcherConfiguration()])
    def test_so_is_a_worker(self, settings, form):
        settings.ROBUST_QUEUE = {"workers": [form]}
        [problem] = problems()
        assert problem.path == "ROBUST_QUEUE['workers'][0]"
        assert problem.cure == "It must be a dict or a WorkerConfiguration."

    def test_a_dict_within_a_dataclass_is_refused_at_once(self):
        with pytest.raises(ConfigurationError) as refusal:
            ConfigurationOptions(workers=[{"threads": 0}])
        assert refusal.value.path == "ConfigurationOptions.workers[0]['threads']"

    def test_every_problem_is_told(self, settings):
        settings.ROBUST_QUEUE = {
            "workers": [{"threads": 0, "queues": []}, {"treads": 1}],
            "dispatchers": [{"batch_size": 0}],
            "shutdown_timeout": "soon",
        }
        assert [problem.path for problem in problems()] == [
            "ROBUST_QUEUE['workers'][0]['threads']",
            "ROBUST_QUEUE['workers'][0]['queues']",
            "ROBUST_QUEUE['workers'][1]['treads']",
            "ROBUST_QUEUE['dispatchers'][0]['batch_size']",
            "ROBUST_QUEUE['shutdown_timeout']",
        ]


class TestNamedQueues:
    DEMAND = (
        "It must be the name of a parameter, a function of (task, args, kwargs), its "
        "dotted path, or None."
    )

    @pytest.mark.parametrize(
        ("queues", "path", "problem"),
        [
            (["imports"], "", "is ['imports']."),
            ({"imports": "tenant"}, "['imports']", "is 'tenant'."),
            ({"imp*": {}}, "['imp*']", "is 'imp*'."),
            ({3: {}}, "[3]", "is 3."),
            ({"a": {"partition": "x"}}, "['a']['partition']", "is not an option."),
            ({"a": {"partition_by": 3}}, "['a']['partition_by']", "is 3."),
            ({"a": {"partition_by": "a b"}}, "['a']['partition_by']", "is 'a b'."),
        ],
    )
    def test_nonsense_is_named_by_its_place(self, settings, queues, path, problem):
        settings.ROBUST_QUEUE = {"queues": queues}
        (found,) = problems()
        assert (found.path, found.problem) == (f"ROBUST_QUEUE['queues']{path}", problem)

    def test_a_coroutine_function_would_never_be_awaited(self):
        with pytest.raises(ConfigurationError) as refusal:
            QueueConfiguration(partition_by=asyncio.sleep)
        assert refusal.value.cure == self.DEMAND
