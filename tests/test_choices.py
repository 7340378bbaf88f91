"""What the command line and the environment ask of one supervisor."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from robust_queue import configuration, recurrence
from robust_queue.configuration import (
    ConfigurationOptions,
    DispatcherConfiguration,
    WorkerConfiguration,
    current,
)
from robust_queue.management.choices import (
    Choices,
    Role,
    choices_of,
    chosen,
    configured,
)
from robust_queue.management.running import Plan, _prepared
from robust_queue.rules import RunMode
from robust_queue.sources import use

MAIL = WorkerConfiguration(
    queues=["mail"], threads=5, processes=2, polling_interval=timedelta(seconds=2)
)
REST = WorkerConfiguration(queues=["*"], threads=7)
BOTH = ConfigurationOptions(workers=[MAIL, REST], shutdown_timeout=9)


class TestReading:
    def test_nothing_is_asked_for_by_itself(self):
        assert choices_of({}, {}) == Choices()
        assert Choices().runs_scheduler
        assert chosen(BOTH, Choices()).workers == BOTH.workers

    def test_options(self):
        options = {
            "mode": "async",
            "only": ["workers", "scheduler,dispatchers"],
            "skip_recurring": True,
            "queues": "mail, reports*",
            "threads": "4",
            "reload": False,
        }
        assert choices_of(options, {}) == Choices(
            mode=RunMode.ASYNC,
            only=frozenset(Role),
            skip_recurring=True,
            queues=["mail", "reports*"],
            threads=4,
            reload=False,
        )

    def test_variables(self):
        variables = {
            "ROBUST_QUEUE_MODE": "fork",
            "ROBUST_QUEUE_ONLY": "workers, dispatchers",
            "ROBUST_QUEUE_SKIP_RECURRING": "Yes",
            "ROBUST_QUEUE_QUEUES": "mail,reports*",
            "ROBUST_QUEUE_THREADS": " 4",
            "ROBUST_QUEUE_RELOAD": "off",
            "ROBUST_QUEUE_DRY_RUN": "1",
        }
        assert choices_of({}, variables) == Choices(
            mode=RunMode.FORK,
            only=frozenset({Role.WORKERS, Role.DISPATCHERS}),
            skip_recurring=True,
            queues=["mail", "reports*"],
            threads=4,
            reload=False,
            dry_run=True,
        )

    def test_an_option_outranks_its_variable_and_only_that(self):
        variables = {"ROBUST_QUEUE_THREADS": "4", "ROBUST_QUEUE_QUEUES": "mail"}
        choices = choices_of({"threads": "8", "queues": None}, variables)
        assert choices == Choices(threads=8, queues=["mail"])

    def test_an_empty_variable_is_none(self):
        assert choices_of({}, {"ROBUST_QUEUE_THREADS": ""}) == Choices()

    def test_code_may_pass_values_instead_of_text(self):
        options = {"threads": 4, "queues": ["mail", "reports"]}
        assert choices_of(options, {}) == Choices(threads=4, queues=["mail", "reports"])

    @pytest.mark.parametrize(
        ("name", "value", "cure"),
        [
            ("mode", "threads", "'fork' or 'async'"),
            ("only", "worker", "workers, dispatchers or scheduler"),
            ("only", "workers,", "workers, dispatchers or scheduler"),
            ("skip_recurring", "maybe", "true, yes, on"),
            ("queues", "mail,,reports", "names of queues"),
            ("queues", "*_slow", "only at the end"),
            ("threads", "0", "from 1 to 10,000"),
            ("threads", "many", "a whole number"),
            ("threads", "1.5", "a whole number"),
            ("reload", "2", "true, yes, on"),
        ],
    )
    def test_nonsense_is_refused_with_its_place_and_a_cure(self, name, value, cure):
        option = f"--{name.replace('_', '-')}"
        variable = f"ROBUST_QUEUE_{name.upper()}"
        for place, options, environment in [
            (option, {name: value}, {}),
            (variable, {}, {variable: value}),
        ]:
            with pytest.raises(CommandError) as refused:
                choices_of(options, environment)
            assert str(refused.value).startswith(f"{place} is {value!r}. It must be ")
            assert cure in str(refused.value)
            assert refused.value.returncode == 2

    def test_an_option_without_a_value_is_refused(self):
        with pytest.raises(CommandError, match="--queues is ''"):
            choices_of({"queues": ""}, {})


class TestChoosing:
    def test_queues_make_one_worker_after_the_first(self):
        [worker] = chosen(BOTH, Choices(queues=["reports", "x*"])).workers
        assert worker.queues == ("reports", "x*")
        assert (worker.threads, worker.processes) == (5, 2)
        assert worker.polling_interval == timedelta(seconds=2)

    @pytest.mark.parametrize("workers", [None, []])
    def test_queues_make_a_worker_where_there_was_none(self, workers):
        options = ConfigurationOptions(workers=workers)
        [worker] = chosen(options, Choices(queues=["mail"])).workers
        assert worker == WorkerConfiguration(queues=["mail"])

    def test_threads_are_those_of_every_worker(self):
        workers = chosen(BOTH, Choices(threads=1)).workers
        assert [each.threads for each in workers] == [1, 1]
        assert [each.queues for each in workers] == [("mail",), ("*",)]

    def test_only_leaves_the_others_out(self):
        workers = chosen(BOTH, Choices(only=frozenset({Role.WORKERS})))
        assert workers.effective_workers == BOTH.workers
        assert not workers.effective_dispatchers
        dispatchers = chosen(BOTH, Choices(only=frozenset({Role.DISPATCHERS})))
        assert not dispatchers.effective_workers
        assert dispatchers.effective_dispatchers == (DispatcherConfiguration(),)

    def test_queues_make_no_worker_where_none_is_wanted(self):
        choices = Choices(only=frozenset({Role.DISPATCHERS}), queues=["mail"])
        assert not chosen(BOTH, choices).effective_workers

    @pytest.mark.parametrize(
        ("only", "skip", "runs"),
        [
            (Role, False, True),
            (Role, True, False),
            ([Role.SCHEDULER], False, True),
            ([Role.SCHEDULER], True, False),
            ([Role.WORKERS], False, False),
        ],
    )
    def test_the_scheduler_runs_unless_left_out(self, only, skip, runs):
        choices = Choices(only=frozenset(only), skip_recurring=skip)
        assert choices.runs_scheduler is runs

    def test_the_mode(self):
        threads = ConfigurationOptions(mode="async")
        assert chosen(threads, Choices()).mode is RunMode.ASYNC
        assert chosen(threads, Choices(mode=RunMode.FORK)).mode is RunMode.FORK

    def test_everything_else_stays(self):
        options = chosen(BOTH, Choices(threads=1))
        assert options.shutdown_timeout == timedelta(seconds=9)


def large():
    return {"workers": [{"threads": 50}], "shutdown_timeout": 50}


LARGE = ConfigurationOptions(workers=[{"threads": 51}])
BROKEN = {"workers": [{"treads": 50}], "shutdown_timeout": -1}
NOTHING = None
HERE = __name__


class TestConfig:
    @pytest.mark.parametrize(("name", "threads"), [("large", 50), ("LARGE", 51)])
    def test_takes_the_place_of_the_setting(self, settings, name, threads):
        settings.ROBUST_QUEUE = {"preserve_finished_jobs": False}
        with configured({"config": f"{HERE}.{name}"}, {}):
            assert current().effective_workers[0].threads == threads
            assert current().preserve_finished_jobs is True
        assert current().effective_workers[0].threads == 3
        assert current().preserve_finished_jobs is False

    def test_is_named_by_a_variable_as_well(self):
        with configured({}, {"ROBUST_QUEUE_CONFIG": f"{HERE}.large"}):
            assert current().shutdown_timeout == timedelta(seconds=50)

    def test_is_named_where_it_is_wrong(self):
        with configured({"config": f"{HERE}.BROKEN"}, {}):
            paths = {each.path for each in configuration.problems()}
        assert paths == {
            f"{HERE}.BROKEN['workers'][0]['treads']",
            f"{HERE}.BROKEN['shutdown_timeout']",
        }

    def test_is_named_by_checks(self):
        with configured({"config": f"{HERE}.large"}, {}):
            assert configuration.path_of("database") == f"{HERE}.large['database']"
        with configured({"config": f"{HERE}.LARGE"}, {}):
            assert configuration.path_of("database") == f"{HERE}.LARGE.database"
        assert configuration.path_of("database") == "ROBUST_QUEUE['database']"

    @pytest.mark.parametrize(
        ("dotted", "cause"),
        [
            ("nowhere", "doesn't look like a module path"),
            ("no.such.module", "No module named 'no'"),
            (f"{HERE}.nobody", 'does not define a "nobody"'),
            (f"{HERE}.NOTHING", "which is None. It must be a ConfigurationOptions"),
            (f"{HERE}.HERE", "a dict, or a function"),
        ],
    )
    def test_what_cannot_be_used_is_refused(self, dotted, cause):
        for place, options, environment in [
            ("--config", {"config": dotted}, {}),
            ("ROBUST_QUEUE_CONFIG", {}, {"ROBUST_QUEUE_CONFIG": dotted}),
        ]:
            with pytest.raises(CommandError) as refused:
                configured(options, environment)
            assert str(refused.value).startswith(f"{place} is {dotted!r}, which ")
            assert cause in str(refused.value)

    def test_one_inside_the_other(self):
        with use({"shutdown_timeout": 1}, place="outer"):
            with use(ConfigurationOptions(shutdown_timeout=2)):
                assert current().shutdown_timeout == timedelta(seconds=2)
                assert configuration.path_of("mode") == "outer.mode"
            assert current().shutdown_timeout == timedelta(seconds=1)


class TestTheCommand:
    @pytest.mark.parametrize(
        ("options", "cause"),
        [
            ({"only": ["scheduler"], "skip_recurring": True}, "scheduler is left out"),
            ({"only": ["workers"]}, "no worker"),
        ],
    )
    def test_a_supervisor_with_nothing_to_run_is_refused(
        self, settings, monkeypatch, options, cause
    ):
        settings.ROBUST_QUEUE = {"workers": []}
        monkeypatch.setattr(recurrence, "_declared", [])
        with pytest.raises(CommandError, match=cause) as refused:
            call_command("robust_queue", **options, dry_run=True)
        assert "--skip-recurring" in str(refused.value)

    def test_a_scheduler_alone_waits_for_what_is_made_to_recur(
        self, settings, monkeypatch, capsys
    ):
        settings.ROBUST_QUEUE = {"workers": []}
        monkeypatch.setattr(recurrence, "_declared", [])
        call_command("robust_queue", only=["scheduler"], dry_run=True)
        assert "until a task is made to recur" in capsys.readouterr().out

    def test_which_is_the_only_one(self, settings, monkeypatch):
        settings.ROBUST_QUEUE = {"workers": [], "dispatchers": []}
        monkeypatch.setattr(recurrence, "_declared", [])
        plan = Plan(database="default", recurring=True, reloads=False)
        _, seats, reserve = _prepared(plan)
        assert ([seat.kind for seat in seats], reserve) == (["Scheduler"], None)
