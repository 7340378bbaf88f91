"""Coroutines in real workers: many at once, beside threads, through crashes and stops.

What one of them may do is asked in test_flights.py, inside the process of the test.
"""

import time
from signal import SIGQUIT

import pytest

from robust_queue import enqueue_all
from robust_queue.models import FailedExecution, FinishedExecution, Process
from robust_queue.processes.exits import ExitCode
from tests.support.invariants import state_of, states
from tests.support.supervisors import marks
from tests.testapp.coroutine_tasks import (
    MODULES,
    attend,
    attend_again,
    block,
    cancel_itself,
    clean_up,
    count_customers,
    exit_when_told,
    fail,
    insist,
    interrupt,
    leave_politely,
    nap,
    run_out_of_memory,
    start_something_that_exits,
    store,
)
from tests.testapp.models import Customer
from tests.testapp.witnessed_tasks import once


@pytest.fixture
def started(witnessed):
    """Starts supervisors whose workers know the coroutines of the tests."""

    def start(*arguments, threads=1, coroutines=50, **options):
        worker = {
            "threads": threads,
            "coroutines": coroutines,
            "polling_interval": 0.05,
            "processes": options.pop("processes", 1),
        }
        modules = {"task_modules": MODULES}
        return witnessed(*arguments, workers=[worker], **modules, **options)

    return start


def are(state, *results):
    return all(state_of(each) == state for each in results)


def test_thousands_are_done_in_little_more_time_than_they_wait(started):
    """With the threads alone it would take more than a minute."""
    supervisor = started(threads=3, coroutines=200).until_up()
    begun = time.monotonic()
    enqueue_all(nap.bind(0.1) for _ in range(2_000))
    supervisor.until(lambda: FinishedExecution.objects.count() == 2_000)
    assert time.monotonic() - begun < 10
    assert supervisor.stop() == ExitCode.DONE


def test_a_worker_tells_for_how_many_it_has_room(started):
    supervisor = started(coroutines=7).until_up()
    assert '"coroutines": 7' in Process.objects.get(kind="Worker").metadata
    assert supervisor.stop() == ExitCode.DONE


@pytest.mark.parametrize("coroutines", [0, 50])
def test_the_database_is_used_from_coroutines(started, coroutines):
    results = [count_customers.enqueue(f"{n}") for n in range(30)]
    supervisor = started(coroutines=coroutines)
    supervisor.until(lambda: are("finished", *results))
    assert supervisor.stop() == ExitCode.DONE
    assert Customer.objects.count() == 30
    results[7].refresh()
    assert results[7].return_value[:2] == [["7"], 1]


@pytest.mark.parametrize("coroutines", [0, 50])
def test_nothing_that_a_coroutine_raises_harms_another(started, witness, coroutines):
    """One thread runs one after the other: what waits comes last there."""
    raising = [
        fail.enqueue("boom"),
        leave_politely.enqueue(),
        interrupt.enqueue(),
        run_out_of_memory.enqueue(),
        cancel_itself.enqueue(),
    ]
    if coroutines:
        raising.append(start_something_that_exits.enqueue())
    beside = attend.enqueue("beside", 0.5)
    supervisor = started(coroutines=coroutines).until_up()
    (worker,) = supervisor.pids()
    supervisor.until(lambda: are("failed", *raising) and are("finished", beside))
    after = attend.enqueue("after")
    supervisor.until(lambda: are("finished", after))
    assert supervisor.pids() == [worker]
    assert {each[2] for each in witness.events()} == {str(worker)}
    assert supervisor.stop() == ExitCode.DONE


def test_busy_threads_keep_nothing_from_workers_that_are_free(started, witness):
    """What one has taken and has no thread for goes back, and the other takes it."""
    long = once.enqueue("long", 60)
    supervisor = started(processes=2).until_up(workers=2)
    supervisor.until(lambda: witness.has("begins", "long"))
    mixed = [
        (once if n % 3 else attend).enqueue(f"{n}", 0.01 if n % 3 else 0.2)
        for n in range(60)
    ]
    supervisor.until(lambda: are("finished", *mixed), "the others have run")
    assert supervisor.stop(SIGQUIT) == ExitCode.QUIT
    assert are("ready", long)
    assert set(witness.count("begins").values()) == {1}
    attempts = FinishedExecution.objects.values_list("attempts", flat=True)
    assert set(attempts) == {1}


class TestCrashes:
    def test_what_ran_meets_its_crash_policy_and_what_had_not_begun_goes_back(
        self, started, witness
    ):
        doomed, lucky = attend.enqueue("doomed", 60), attend_again.enqueue("lucky")
        supervisor = started().until_up()
        supervisor.until(lambda: witness.has("begins", "doomed", "lucky"))
        (worker,) = supervisor.pids()
        culprit = exit_when_told.enqueue()
        supervisor.until(lambda: state_of(culprit) == "claimed")
        stuck = attend.enqueue("stuck")
        waiting = [attend.enqueue(f"{n}") for n in range(3)]
        supervisor.until(lambda: are("claimed", stuck, *waiting), "all are taken")
        witness.let_exit()
        supervisor.until(lambda: witness.count("begins")["lucky"] == 2)
        witness.let_hurry()
        supervisor.until(lambda: are("finished", lucky, *waiting), "a successor works")
        assert are("failed", doomed, culprit, stuck)
        assert set(
            FailedExecution.objects.values_list("exception_class", flat=True)
        ) == {"robust_queue.processes.ProcessExitError"}
        for each in waiting:
            each.refresh()
            assert each.attempts == 1
        assert worker not in supervisor.pids()
        assert supervisor.stop() == ExitCode.DONE


class TestStops:
    def test_running_coroutines_finish_and_waiting_ones_go_back(self, started, witness):
        running = [attend.enqueue(f"{n}", 1) for n in range(20)]
        supervisor = started(coroutines=10).until_up()
        supervisor.until(lambda: len(witness.count("begins")) == 10)
        assert supervisor.stop() == ExitCode.DONE
        found = [state_of(each) for each in running]
        assert found == ["finished"] * 10 + ["ready"] * 10
        assert len(witness.count("announced")) == 10

    @pytest.mark.parametrize("mode", ["fork", "async"])
    def test_what_outlives_the_shutdown_timeout_cleans_up_and_goes_back(
        self, started, witness, mode
    ):
        long, short = clean_up.enqueue("long"), attend.enqueue("short", 0.5)
        insisting = insist.enqueue("insisting")
        supervisor = started("--mode", mode, shutdown_timeout=1).until_up()
        supervisor.until(lambda: witness.has("begins", "long", "short", "insisting"))
        assert supervisor.stop() == ExitCode.LEFT_BEHIND
        assert are("ready", long)
        assert are("finished", short, insisting)
        assert witness.has("cleans-up", "long")
        assert states()
        long.refresh()
        assert long.attempts == 0


def test_what_blocks_the_loop_is_named_in_the_log(started):
    result = block.enqueue(1)
    supervisor = started()
    supervisor.until(lambda: are("finished", result))
    supervisor.until(
        lambda: "coroutine_tasks.block blocks the event loop" in supervisor.log
    )
    assert f" in block: time.sleep(seconds) (job {result.id})" in supervisor.log
    assert supervisor.stop() == ExitCode.DONE


def test_coroutines_survive_a_restart_of_the_server(started, server):
    supervisor = started(settings=server.settings, process_alive_threshold=20)
    before = [store.enqueue(f"before {n}") for n in range(5)]
    supervisor.until(lambda: are("finished", *before))
    ended = time.monotonic()
    supervisor.until(lambda: time.monotonic() > ended + 1.2, "it is idle")
    server.stop()
    server.start()
    after = [store.enqueue(f"after {n}") for n in range(5)]
    supervisor.until(lambda: not {"ready", "claimed"} & {*map(state_of, after)})
    assert are("finished", *after)
    assert len(marks()) == 10
    assert supervisor.stop() == ExitCode.DONE
