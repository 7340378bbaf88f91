"""Workers that are replaced before they have grown too old or too large."""

import json

from robust_queue.models import Process
from robust_queue.processes.exits import ExitCode
from tests.support.invariants import state_of
from tests.support.recycling import run_with_replacements
from tests.support.supervisors import is_alive, marks
from tests.testapp.models import Mark
from tests.testapp.process_tasks import grow, mark, rest


def one_worker(**options):
    return {"workers": [{"threads": 3, "polling_interval": 0.05, **options}]}


def test_every_task_runs_exactly_once_over_many_successors(witnessed, witness):
    # While it waits for its successor a worker does more, above all on a busy machine.
    workers = run_with_replacements(witnessed, witness, jobs=2000)
    assert workers >= 10


def test_the_successor_is_up_before_the_old_one_is_gone(supervised):
    supervisor = supervised(**one_worker(max_tasks=1)).until_up()
    (old,) = supervisor.pids()
    long = rest.enqueue("long", 3)
    supervisor.until(lambda: "long begins" in marks(), "it runs")
    mark.enqueue("tires it out")
    successors = supervisor.until(
        lambda: [pid for pid in supervisor.pids() if pid != old], "a successor is up"
    )
    assert is_alive(old), "what runs in it is not over"
    after = mark.enqueue("after")
    supervisor.until(lambda: state_of(after) == "finished", "the successor works")
    assert Mark.objects.get(label="after").pid in {*successors, *supervisor.pids()}
    supervisor.until(lambda: state_of(long) == "finished", "it was left in peace")
    supervisor.until(lambda: not is_alive(old), "the old one leaves")
    assert supervisor.stop() == ExitCode.DONE


def test_running_tasks_may_take_longer_than_a_stop_would_allow(supervised):
    supervisor = supervised(shutdown_timeout=0.2, **one_worker(max_tasks=1)).until_up()
    long = rest.enqueue("long", 2)
    supervisor.until(lambda: "long begins" in marks(), "it runs")
    mark.enqueue("tires it out")
    supervisor.until(lambda: state_of(long) == "finished", "it was left in peace")
    assert marks("long") == ["long begins", "long ends"]
    supervisor.stop()


def test_a_stop_while_a_worker_is_replaced_has_its_usual_limit(supervised):
    supervisor = supervised(shutdown_timeout=0.5, **one_worker(max_tasks=1)).until_up()
    (old,) = supervisor.pids()
    long = rest.enqueue("long", 60)
    supervisor.until(lambda: "long begins" in marks(), "it runs")
    mark.enqueue("tires it out")
    supervisor.until(lambda: set(supervisor.pids()) - {old}, "a successor is up")
    assert supervisor.stop(timeout=15) == ExitCode.LEFT_BEHIND
    assert state_of(long) == "ready"


def test_a_worker_that_has_grown_too_large_is_replaced(supervised):
    supervisor = supervised(**one_worker(max_rss=300 * 1024**2)).until_up()
    (old,) = supervisor.pids()
    mark.enqueue("small")
    supervisor.until(lambda: marks() == ["small"], "it has run")
    grow.enqueue(320)
    supervisor.until(lambda: not is_alive(old), "the old one leaves")
    assert "it has grown to" in supervisor.log
    after = mark.enqueue("after")
    supervisor.until(lambda: state_of(after) == "finished", "the successor works")
    assert supervisor.pids() != [old]
    assert supervisor.stop() == ExitCode.DONE


def test_workers_do_not_multiply_while_long_tasks_outlive_successors(supervised):
    supervisor = supervised(**one_worker(threads=2, max_tasks=2)).until_up()
    for number in range(3):
        rest.enqueue(f"long-{number}", 1.5)
        results = [mark.enqueue(f"{number}-{n}") for n in range(8)]
        supervisor.until(
            lambda: all(state_of(each) == "finished" for each in results),  # noqa: B023
            "the quick ones have run",
        )
        assert len(supervisor.pids()) <= 3, "who leaves, who works, who is to come"
    supervisor.until(
        lambda: len(marks("long")) == 6 and len(supervisor.pids()) == 1,
        "one is left",
    )
    assert supervisor.stop() == ExitCode.DONE
    assert not Process.objects.exists()


def test_a_limit_below_the_size_of_a_fresh_worker_is_not_heeded(supervised):
    supervisor = supervised(**one_worker(max_rss=1024**2)).until_up()
    (before,) = supervisor.pids()
    results = [mark.enqueue(f"{n}") for n in range(5)]
    supervisor.until(
        lambda: all(state_of(each) == "finished" for each in results), "all have run"
    )
    assert supervisor.pids() == [before]
    assert "max_rss is not heeded: a fresh worker has" in supervisor.log
    assert supervisor.stop() == ExitCode.DONE


def test_a_slow_hook_at_the_start_is_part_of_booting(supervised):
    obstacles = json.dumps({"hook_slowly": 1.5, "watch_early": 0})
    supervisor = supervised(
        task_modules=["tests.testapp.process_tasks", "tests.testapp.obstacles"],
        environment={"RQ_OBSTACLES": obstacles},
        **one_worker(max_tasks=1),
    ).until_up()
    results = [mark.enqueue(f"{n}") for n in range(4)]
    supervisor.until(
        lambda: all(state_of(each) == "finished" for each in results), "all have run"
    )
    supervisor.until(lambda: "asks for a successor" in supervisor.log, "it is tired")
    assert supervisor.stop() == ExitCode.DONE
    assert "is killed" not in supervisor.log


def test_a_start_that_takes_longer_than_trust_lasts_is_no_death(supervised):
    obstacles = json.dumps({"hook_slowly": 4, "watch_early": 0})
    supervisor = supervised(
        task_modules=["tests.testapp.process_tasks", "tests.testapp.obstacles"],
        environment={"RQ_OBSTACLES": obstacles},
        process_alive_threshold=3,
    )
    result = mark.enqueue("it")
    supervisor.until(lambda: state_of(result) == "finished", "it has run")
    assert supervisor.stop() == ExitCode.DONE
    assert "is killed" not in supervisor.log
