"""Options and variables of ``manage.py robust_queue``, with real supervisors."""

import json
from signal import SIGTERM

import pytest

from robust_queue.models import Pause, Process
from robust_queue.processes.exits import ExitCode
from tests.processes.test_commands import are, command, session_of
from tests.testapp.process_tasks import mark

RECURRING = ["tests.testapp.process_tasks", "tests.testapp.every_second"]
TWO_WORKERS = [
    {"queues": ["mail"], "threads": 4, "polling_interval": 0.05},
    {"queues": ["*"], "threads": 5, "polling_interval": 0.05},
]


def kinds(supervisor):
    return sorted(row.kind for row in supervisor.rows())


def until_all_are_up(supervisor, *wanted):
    """Wait until these are up, and there is no process beside them."""
    supervisor.until(lambda: kinds(supervisor) == sorted(wanted), wanted)
    are_all = 1 + len(wanted)
    supervisor.until(lambda: len(session_of(supervisor)) == are_all, "nobody else")


def facts(supervisor, kind="Worker"):
    return [json.loads(row.metadata) for row in supervisor.rows(kind)]


# ── What runs ──────────────────────────────────────────────────────────────────


def test_only_workers(supervised):
    supervisor = supervised("--only", "workers", task_modules=RECURRING)
    until_all_are_up(supervisor, "Worker")
    result = mark.enqueue("it")
    supervisor.until(lambda: are("finished", result), "a worker works")
    assert supervisor.stop() == ExitCode.DONE


def test_everything_but_workers_by_a_variable(supervised):
    result = mark.enqueue("it")
    variables = {"ROBUST_QUEUE_ONLY": "dispatchers,scheduler"}
    supervisor = supervised(environment=variables, task_modules=RECURRING)
    until_all_are_up(supervisor, "Dispatcher", "Scheduler")
    assert supervisor.stop() == ExitCode.DONE
    assert are("ready", result)
    assert "no worker of this supervisor" not in supervisor.log


def test_an_option_outranks_the_variable(supervised):
    variables = {"ROBUST_QUEUE_ONLY": "workers"}
    supervisor = supervised(
        *("--only", "dispatchers", "--only", "scheduler"),
        environment=variables,
        task_modules=RECURRING,
    )
    until_all_are_up(supervisor, "Dispatcher", "Scheduler")
    assert supervisor.stop() == ExitCode.DONE


@pytest.mark.parametrize(
    ("options", "variables"),
    [(["--skip-recurring"], {}), ([], {"ROBUST_QUEUE_SKIP_RECURRING": "true"})],
    ids=["option", "variable"],
)
def test_recurring_tasks_can_be_left_to_others(supervised, options, variables):
    supervisor = supervised(*options, environment=variables, task_modules=RECURRING)
    until_all_are_up(supervisor, "Dispatcher", "Worker")
    assert supervisor.stop() == ExitCode.DONE
    assert "recurring tasks are left to others" in supervisor.log


def test_queues_and_threads(supervised):
    served, unserved = (
        mark.using(queue_name=name).enqueue(name) for name in ("reports_daily", "mail")
    )
    supervisor = supervised(
        *("--queues", "reports*,photos", "--threads", "1"), workers=TWO_WORKERS
    ).until_up()
    supervisor.until(lambda: are("finished", served), "what is served has run")
    [worker] = facts(supervisor)
    assert worker["queues"] == ["reports*", "photos"]
    assert (worker["threads"], worker["polling_interval"]) == (1, 0.05)
    assert are("ready", unserved)
    assert (
        "1 process of 1 thread and 100 coroutines, queues reports*, photos"
        in supervisor.log
    )
    assert "Queue 'mail' has ready jobs, and no worker" in supervisor.log
    assert supervisor.stop() == ExitCode.DONE


def test_until_empty_looks_at_the_queues_that_were_asked_for(supervised):
    served, unserved = (
        mark.using(queue_name=name).enqueue(name) for name in ("reports", "mail")
    )
    variables = {"ROBUST_QUEUE_QUEUES": "reports"}
    supervisor = supervised("--until-empty", environment=variables)
    assert supervisor.wait() == ExitCode.DONE
    assert are("finished", served)
    assert are("ready", unserved)


def test_threads_of_every_worker_by_a_variable(supervised):
    variables = {"ROBUST_QUEUE_THREADS": "2"}
    supervisor = supervised(environment=variables, workers=TWO_WORKERS).until_up(2)
    assert [worker["threads"] for worker in facts(supervisor)] == [2, 2]
    assert supervisor.stop() == ExitCode.DONE


# ── --config ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["option", "variable"])
def test_another_configuration_by_its_dotted_path(supervised, tmp_path, way):
    (tmp_path / "queueing.py").write_text(
        "def reports():\n"
        "    return {'workers': [{'queues': 'reports', 'threads': 2}],\n"
        "            'task_modules': ['tests.testapp.process_tasks'],\n"
        "            'shutdown_timeout': 11}\n"
    )
    path = "queueing.reports"
    options = ["--config", path] if way == "option" else []
    variables = {"ROBUST_QUEUE_CONFIG": path} if way == "variable" else {}
    supervisor = supervised(*options, environment=variables).until_up()
    result = mark.using(queue_name="reports").enqueue("it")
    supervisor.until(lambda: are("finished", result), "its worker works")
    [worker] = facts(supervisor)
    assert (worker["queues"], worker["threads"]) == (["reports"], 2)
    assert "running tasks have 11 s to finish" in supervisor.log
    supervisor.send(SIGTERM)
    assert supervisor.wait() == ExitCode.DONE
    # As children and supervisor have it, who inherit it.
    assert "tasks have 0:00:11 to finish" in supervisor.log


def test_a_configuration_that_makes_no_sense_is_refused_by_its_place(
    transactional_db,
):
    broken = ("--config", "tests.test_choices.BROKEN")
    for verb in ((), ("pause", "mail")):
        told = command(*broken, *verb)
        assert told.returncode == 1
        assert "tests.test_choices.BROKEN['workers'][0]['treads']" in told.stderr
        assert "Did you mean 'threads'?" in told.stderr
    assert not Pause.objects.exists()


# ── Refusals and rehearsals ────────────────────────────────────────────────────


def test_a_command_line_that_makes_no_sense_is_refused(transactional_db):
    told = command("--threads", "none")
    assert told.returncode == 2
    expected = "--threads is 'none'. It must be a whole number from 1 to 10,000."
    assert f"CommandError: {expected}" in told.stderr
    assert not Process.objects.exists()


def test_a_dry_run_tells_what_would_run(transactional_db, tmp_path):
    pidfile = tmp_path / "supervisor.pid"
    told = command("--dry-run", "--threads", "9", "--pidfile", str(pidfile))
    # The settings of these supervisors leave out a backend that some tasks want.
    assert told.returncode == ExitCode.INCOMPLETE
    assert "1 process of 9 threads and 100 coroutines, queues *" in told.stdout
    assert "reload" not in told.stdout
    assert not pidfile.exists()
    assert not Process.objects.exists()
