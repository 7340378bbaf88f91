"""Everything in one process: all actors are threads of the supervisor's."""

from datetime import timedelta
from signal import SIGINT, SIGQUIT, SIGTERM

import pytest
from django.utils import timezone

from robust_queue.models import ClaimedExecution, FailedExecution, Process
from robust_queue.processes.exits import ExitCode
from tests.support.invariants import state_of, states
from tests.support.supervisors import is_alive, marks
from tests.testapp.models import Mark
from tests.testapp.process_tasks import end_a_pool, fail, mark, rest
from tests.testapp.witnessed_tasks import store

TWO_WORKERS = [
    {"queues": "default", "threads": 2, "processes": 3, "polling_interval": 0.05},
    {"queues": "mail*", "threads": 1, "polling_interval": 0.05, "max_tasks": 1},
]


@pytest.fixture
def threaded(supervised):
    def start(*arguments, **options):
        return supervised("--mode", "async", *arguments, **options)

    return start


def finished(*results):
    return all(state_of(each) == "finished" for each in results)


def test_everything_runs_in_one_process(threaded):
    supervisor = threaded(workers=TWO_WORKERS).until_up(2)
    due = mark.using(run_after=timezone.now() + timedelta(seconds=0.1)).enqueue("due")
    results = [mark.enqueue("it"), mark.using(queue_name="mail_1").enqueue("mail"), due]
    failed = fail.enqueue("fails")
    supervisor.until(lambda: finished(*results), "all have run")
    supervisor.until(lambda: state_of(failed) == "failed", "and one has failed")
    assert {row.pid for row in supervisor.rows()} == {supervisor.pid}
    assert sorted(row.kind for row in supervisor.rows()) == [
        "Dispatcher",
        "Worker",
        "Worker",
    ]
    assert {each.pid for each in Mark.objects.all()} == {supervisor.pid}
    assert "`processes` is ignored" in supervisor.log
    assert "`max_rss` are ignored" in supervisor.log
    assert supervisor.stop() == ExitCode.DONE
    assert not Process.objects.exists()


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_stop_lets_running_tasks_finish(threaded, number):
    supervisor = threaded().until_up()
    running = rest.enqueue("running", 1)
    supervisor.until(lambda: marks() == ["running begins"], "it runs")
    assert supervisor.stop(number) == ExitCode.DONE
    assert finished(running)
    assert not Process.objects.exists()


def test_what_takes_too_long_goes_back_and_the_process_ends(threaded):
    supervisor = threaded(shutdown_timeout=0.5).until_up()
    running = rest.enqueue("running", 60)
    supervisor.until(lambda: marks() == ["running begins"], "it runs")
    assert supervisor.stop(timeout=20) == ExitCode.LEFT_BEHIND
    assert not is_alive(supervisor.pid)
    assert state_of(running) == "ready"
    assert not Process.objects.exists()


def test_quit_leaves_at_once(threaded):
    supervisor = threaded(shutdown_timeout=60).until_up()
    running = rest.enqueue("running", 60)
    supervisor.until(lambda: marks() == ["running begins"], "it runs")
    assert supervisor.stop(SIGQUIT, timeout=20) == ExitCode.QUIT
    assert state_of(running) == "ready"


def test_until_empty_ends_by_itself(threaded):
    results = [mark.enqueue(f"{n}") for n in range(20)]
    supervisor = threaded("--until-empty")
    assert supervisor.wait() == ExitCode.DONE
    assert finished(*results)


def test_who_was_struck_off_begins_anew(threaded):
    supervisor = threaded().until_up()
    (before,) = supervisor.rows("Worker")
    Process.objects.filter(pk=before.pk).delete()
    supervisor.until(
        lambda: [row for row in supervisor.rows("Worker") if row.pk != before.pk],
        "another worker is up",
    )
    assert "was taken for dead" in supervisor.log
    after = mark.enqueue("after")
    supervisor.until(lambda: finished(after), "it works on")
    assert supervisor.stop() == ExitCode.DONE


def test_it_outlives_a_restart_of_the_database(threaded, witness, server):
    supervisor = threaded(
        settings=server.settings, environment=witness.environment, **witness.options
    ).until_up()
    before = [store.enqueue(f"before-{n}") for n in range(20)]
    server.stop(by_crash=True)
    server.start()
    after = [store.enqueue(f"after-{n}") for n in range(20)]
    supervisor.until(lambda: finished(*before, *after), "all have run", timeout=60)
    assert not FailedExecution.objects.exists()
    assert not ClaimedExecution.objects.exists()
    assert set(states().values()) == {"finished"}
    assert supervisor.stop() == ExitCode.DONE


@pytest.mark.parametrize("mode", ["fork", "async"])
def test_what_tasks_fork_heeds_signals(supervised, mode):
    supervisor = supervised("--mode", mode).until_up()
    result = end_a_pool.enqueue(15)
    supervisor.until(lambda: finished(result), "every pool was terminated")
    assert supervisor.stop() == ExitCode.DONE
