"""Processes that die, hang, sleep or are misled, with real signals."""

import json
import os
import re
import time
from datetime import timedelta
from signal import SIGABRT, SIGCONT, SIGKILL, SIGRTMIN, SIGSEGV, SIGSTOP
from uuid import uuid4

import pytest
from django.utils import timezone

from robust_queue.models import (
    Attempt,
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    Job,
    Process,
)
from robust_queue.processes.exits import ExitCode
from tests.support import rows
from tests.support.invariants import state_of, states
from tests.support.supervisors import is_alive, marks, until
from tests.testapp.hostile_tasks import (
    eat_memory,
    exit_and_fail,
    exit_and_retry,
    exit_with,
    fail_once,
    have_a_child,
    interrupt,
    leave_generator,
    raise_the_unspeakable,
    signal_oneself,
    tell,
    tick,
    wait_for,
)
from tests.testapp.models import Mark
from tests.testapp.process_tasks import (
    exit_every_time,
    fail,
    hold_on_to_the_interpreter,
    leave_politely,
    mark,
    recurse,
    rest,
    rest_again,
)

ONE_THREAD = [{"threads": 1, "polling_interval": 0.05}]
TWO_PROCESSES = [{"threads": 1, "processes": 2, "polling_interval": 0.05}]
FOUR_PROCESSES = [{"threads": 1, "processes": 4, "polling_interval": 0.05}]
# Short, but longer than this machine is ever away.
WATCHFUL = {"process_heartbeat_interval": 0.4, "process_alive_threshold": 2}
MODULES = ["process_tasks", "hostile_tasks", "obstacles"]


@pytest.fixture
def hostile(supervised):
    """Starts supervisors that know hostile tasks and meet obstacles."""

    def start(*arguments, obstacles=None, **options):
        return supervised(
            *arguments,
            task_modules=[f"tests.testapp.{each}" for each in MODULES],
            environment={"RQ_OBSTACLES": json.dumps(obstacles or {})},
            **options,
        )

    return start


@pytest.fixture
def obstacle(tmp_path):
    """A file that is in the way until it is removed."""
    path = tmp_path / "obstacle"
    path.touch()
    return path


def are(state, *results):
    return all(state_of(each) == state for each in results)


def pid_of(label):
    return Mark.objects.filter(label=label).latest("pk").pid


def error_of(result):
    return FailedExecution.objects.get(pk=result.id)


def attempts_of(result):
    return list(
        Attempt.objects.filter(job_id=result.id)
        .order_by("attempts")
        .values_list("attempts", "exception_class")
    )


EXIT_ERROR = "robust_queue.processes.ProcessExitError"
PRUNED_ERROR = "robust_queue.processes.ProcessPrunedError"
MISSING_ERROR = "robust_queue.processes.ProcessMissingError"


# ── A worker dies ──────────────────────────────────────────────────────────────


def test_a_killed_worker_leaves_its_sibling_alone(supervised):
    first, second = rest.enqueue("first", 60), rest.enqueue("second", 1.5)
    supervisor = supervised(workers=TWO_PROCESSES).until_up(2)
    supervisor.until(lambda: len(marks()) == 2, "both have begun")
    victim, sibling = pid_of("first begins"), pid_of("second begins")
    os.kill(victim, SIGKILL)
    supervisor.until(lambda: are("failed", first), "the first has failed")
    assert error_of(first).exception_class == EXIT_ERROR
    assert are("claimed", second)
    supervisor.until(lambda: are("finished", second), "the second has finished")
    assert pid_of("second ends") == sibling
    assert sibling in supervisor.pids()
    assert len(marks("second")) == 2
    assert supervisor.stop() == ExitCode.DONE


def test_what_was_not_begun_goes_back_with_its_attempt(hostile, obstacle):
    supervisor = hostile(
        workers=[{"threads": 2, "polling_interval": 0.05}],
        obstacles={"hold_back": str(obstacle)},
    ).until_up()
    running = rest.enqueue("running", 60)
    supervisor.until(lambda: marks("running"), "the first has begun")
    reserved = tell.enqueue("reserved")
    supervisor.until(lambda: are("claimed", reserved), "the second is claimed")
    (victim,) = supervisor.pids()
    os.kill(victim, SIGKILL)
    obstacle.unlink()
    supervisor.until(lambda: are("finished", reserved), "the second has run")
    assert are("failed", running)
    assert marks("reserved") == ["reserved"]
    assert FinishedExecution.objects.get(pk=reserved.id).attempts == 1
    assert not Attempt.objects.exists()


def test_a_job_that_may_do_so_runs_again_after_its_process_died(supervised):
    result = rest_again.enqueue("it", 0.8)
    supervisor = supervised().until_up()
    supervisor.until(marks, "it has begun")
    victim = pid_of("it begins")
    os.kill(victim, SIGKILL)
    supervisor.until(lambda: are("finished", result), "it has finished")
    assert marks() == ["it begins", "it begins", "it ends"]
    assert pid_of("it ends") != victim
    assert attempts_of(result) == [(1, EXIT_ERROR)]
    assert FinishedExecution.objects.get(pk=result.id).attempts == 2


def test_a_job_that_kills_its_process_has_no_more_attempts_than_allowed(hostile):
    by_count = exit_every_time.enqueue("count")
    by_policy = exit_and_retry.enqueue("policy")
    never = exit_and_fail.enqueue("never")
    supervisor = hostile(workers=FOUR_PROCESSES).until_up()
    supervisor.until(lambda: are("failed", by_count, by_policy, never))
    assert len(marks("count")) == len(marks("policy")) == 3
    assert len(marks("never")) == 1
    for result in by_count, by_policy:
        assert attempts_of(result) == [(1, EXIT_ERROR), (2, EXIT_ERROR)]
        assert error_of(result).attempts == 3
    assert attempts_of(never) == []
    assert "exited with code 7" in error_of(by_count).message
    after = mark.enqueue("after")
    supervisor.until(lambda: are("finished", after), "others run")


def test_jobs_that_exit_as_a_process_would_are_no_less_to_blame(hostile):
    codes = sorted({int(each) for each in ExitCode})
    results = [exit_with.enqueue(code) for code in codes]
    supervisor = hostile(workers=FOUR_PROCESSES).until_up()
    supervisor.until(lambda: are("failed", *results), "all have failed")
    for code, result in zip(codes, results, strict=True):
        assert error_of(result).exception_class == EXIT_ERROR
        assert f"exited with code {code}" in error_of(result).message
    assert len(marks()) == len(codes)
    assert supervisor.stop() == ExitCode.DONE


def test_whatever_kills_a_worker_does_not_kill_its_supervisor(hostile):
    numbers = [SIGSEGV, SIGABRT, SIGRTMIN + 5]
    results = [signal_oneself.enqueue(int(number)) for number in numbers]
    supervisor = hostile(workers=FOUR_PROCESSES).until_up()
    supervisor.until(lambda: are("failed", *results), "all have failed")
    messages = [error_of(each).message for each in results]
    assert "killed by SIGSEGV, a fault in native code?" in messages[0]
    assert "killed by SIGABRT" in messages[1]
    assert f"killed by signal {SIGRTMIN + 5:d}" in messages[2]
    after = mark.enqueue("after")
    supervisor.until(lambda: are("finished", after), "others run")
    assert supervisor.stop() == ExitCode.DONE


def test_a_worker_that_was_killed_is_replaced_quickly(supervised):
    supervisor = supervised(workers=TWO_PROCESSES).until_up(2)
    before = set(supervisor.pids())
    victim = min(before)
    begun = time.monotonic()
    os.kill(victim, SIGKILL)
    supervisor.until(lambda: len(set(supervisor.pids()) - {victim}) == 2)
    assert time.monotonic() - begun < 2
    assert before - {victim} <= set(supervisor.pids())


def test_a_crash_loop_slows_down_and_never_gives_up(hostile, obstacle):
    supervisor = hostile(obstacles={"die_in_boot": str(obstacle)})

    def pauses():
        told = re.findall(r"worker-\S+ ended: .*replaced in ([\d.]+) s", supervisor.log)
        return [float(each) for each in told]

    supervisor.until(lambda: len(pauses()) >= 5, "five have died")
    found = pauses()
    assert found[0] <= 0.1
    assert found[4] >= 0.8
    obstacle.unlink()
    result = mark.enqueue("at last")
    supervisor.until(lambda: are("finished", result), "the next one works")
    assert supervisor.stop() == ExitCode.DONE
    assert not Process.objects.exists()


# ── What was done is done ──────────────────────────────────────────────────────


@pytest.fixture
def unsettled(hostile, tmp_path):
    """Kills a worker that has done a job and could not say so."""

    def kill_after(*results, **options):
        done = tmp_path / "done"
        done.touch()
        obstacles = {"never_settle": str(done)}
        supervisor = hostile(obstacles=obstacles, **options).until_up()
        supervisor.until(lambda: len(done.read_text()) == len(results), "all have run")
        assert are("claimed", *results)
        (victim,) = supervisor.pids()
        os.kill(victim, SIGKILL)
        supervisor.until(lambda: not is_alive(victim))
        return supervisor

    return kill_after


def test_what_a_dead_worker_had_finished_is_finished(unsettled):
    result = tell.enqueue("it")
    supervisor = unsettled(result)
    supervisor.until(lambda: are("finished", result), "it is recorded")
    result.refresh()
    assert result.return_value == {"label": "it"}
    assert marks() == ["it"]
    assert supervisor.stop() == ExitCode.DONE


def test_what_a_dead_worker_had_failed_has_failed_as_it_did(unsettled):
    result = fail.enqueue("it")
    supervisor = unsettled(result)
    supervisor.until(lambda: are("failed", result), "it is recorded")
    assert error_of(result).exception_class == "builtins.ValueError"
    assert marks() == ["it"]


def test_what_a_dead_worker_was_to_retry_is_tried_again(unsettled):
    result = fail_once.enqueue("it")
    supervisor = unsettled(result)
    supervisor.until(lambda: len(marks()) == 2, "it has run again")
    assert attempts_of(result) == [(1, "builtins.ValueError")]


def test_what_a_dead_worker_had_finished_may_leave_no_trace(unsettled):
    results = [tell.enqueue(f"it {n}") for n in range(3)]
    supervisor = unsettled(*results, preserve_finished_jobs=False)
    supervisor.until(lambda: not Job.objects.exists(), "all are gone")
    told = "had ended before its process did"
    supervisor.until(lambda: supervisor.log.count(told) == 3, "all are told")
    mark.enqueue("after")
    supervisor.until(lambda: marks("after"), "a successor works")
    assert sorted(marks("it")) == ["it 0", "it 1", "it 2"]


# ── Tasks that do what no task should ──────────────────────────────────────────


def test_whatever_a_task_raises_stays_in_its_job(hostile):
    renamed, garbled, incomplete = (mark.enqueue("never") for _ in range(3))
    rename = {"task_path": "tests.testapp.process_tasks.no_longer_there"}
    Job.objects.filter(pk=renamed.id).update(**rename)
    Job.objects.filter(pk=garbled.id).update(arguments="{not json")
    Job.objects.filter(pk=incomplete.id).update(arguments='{"args":[],"kwargs":{}}')
    results, raised = zip(
        (leave_politely.enqueue(), "builtins.SystemExit"),
        (interrupt.enqueue(), "builtins.KeyboardInterrupt"),
        (leave_generator.enqueue(), "builtins.GeneratorExit"),
        (raise_the_unspeakable.enqueue(), "tests.testapp.hostile_tasks.Unspeakable"),
        (recurse.enqueue(), "builtins.RecursionError"),
        (renamed, "robust_queue.exceptions.UnknownTaskError"),
        (garbled, "robust_queue.exceptions.DeserializationError"),
        (incomplete, "builtins.TypeError"),
        strict=True,
    )
    supervisor = hostile().until_up()
    before = supervisor.pids()
    supervisor.until(lambda: are("failed", *results), "all have failed")
    assert tuple(error_of(each).exception_class for each in results) == raised
    assert "no_longer_there" in error_of(renamed).message
    after = [mark.enqueue(f"after {n}") for n in range(6)]
    supervisor.until(lambda: are("finished", *after), "all threads work on")
    assert supervisor.pids() == before
    assert not marks("never")
    assert supervisor.stop() == ExitCode.DONE


def test_a_task_that_eats_all_memory_fails_and_its_process_goes_on(hostile):
    result = eat_memory.enqueue(2**24, 2**21)
    supervisor = hostile().until_up()
    before = supervisor.pids()
    supervisor.until(lambda: are("failed", result), "it has failed")
    assert error_of(result).exception_class == "builtins.MemoryError"
    after = [mark.enqueue(f"after {n}") for n in range(6)]
    supervisor.until(lambda: are("finished", *after), "all threads work on")
    assert supervisor.pids() == before
    assert supervisor.stop() == ExitCode.DONE


def test_a_task_that_leaves_not_even_crumbs_runs_once(hostile):
    """Whether its process survives is up to chance; not, what becomes of the job."""
    result = eat_memory.enqueue(2**24, 2**20, 2**16, 2**12, 2**9)
    supervisor = hostile().until_up()
    supervisor.until(lambda: are("failed", result), "it has failed")
    assert error_of(result).exception_class in {"builtins.MemoryError", EXIT_ERROR}
    after = [mark.enqueue(f"after {n}") for n in range(6)]
    supervisor.until(lambda: are("finished", *after), "others run")
    assert marks("eat") == ["eat"]
    assert supervisor.stop() == ExitCode.DONE


def test_a_task_may_have_children_of_its_own(hostile):
    results = [have_a_child.enqueue() for _ in range(3)]
    supervisor = hostile().until_up()
    before = supervisor.pids()
    supervisor.until(lambda: are("finished", *results), "all have finished", timeout=10)
    assert supervisor.pids() == before
    assert supervisor.stop() == ExitCode.DONE


# ── A machine dies ─────────────────────────────────────────────────────────────


def test_whoever_is_left_strikes_off_a_machine_that_died(supervised):
    for_good, again = rest.enqueue("for good", 60), rest_again.enqueue("again", 0.5)
    gone = supervised(workers=TWO_PROCESSES, **WATCHFUL).until_up(2)
    gone.until(lambda: len(marks()) == 2, "both have begun")
    dead = [row.pid for row in gone.rows()]
    os.killpg(gone.pid, SIGKILL)
    gone.wait()
    until(lambda: not any(map(is_alive, dead)), "all are dead")
    # The first one ran; the second may not have got as far as its end.
    assert are("claimed", for_good, again)
    survivor = supervised(**WATCHFUL).until_up()
    survivor.until(lambda: are("failed", for_good), "one has failed")
    assert error_of(for_good).exception_class == PRUNED_ERROR
    survivor.until(lambda: are("finished", again), "the other has run again")
    assert attempts_of(again) == [(1, PRUNED_ERROR)]
    assert marks("again") == ["again begins", "again begins", "again ends"]
    own = {survivor.pid, *(row.pid for row in survivor.rows())}
    survivor.until(lambda: set(Process.objects.values_list("pid", flat=True)) == own)
    assert survivor.stop() == ExitCode.DONE
    assert not Process.objects.exists()


def test_claims_of_processes_that_nobody_knows_are_judged(supervised):
    for_good, again = rest.enqueue("for good", 60), rest_again.enqueue("again", 0)
    for result in for_good, again:
        job = Job.objects.get(pk=result.id)
        job.ready_execution.delete()
        rows.claimed(job, by=Process(id=uuid4()), attempts=1)
    supervisor = supervised(**WATCHFUL).until_up()
    supervisor.until(lambda: are("failed", for_good), "one has failed")
    assert error_of(for_good).exception_class == MISSING_ERROR
    supervisor.until(lambda: are("finished", again), "the other has run again")
    assert attempts_of(again) == [(1, MISSING_ERROR)]


ODD_NAMES = ["", "wörker-ü.例え.jp", 'it\'s "odd"; DROP TABLE %s --', "x" * 255]


def test_odd_names_of_hosts_do_not_matter(supervised):
    long_ago = timedelta(hours=1)
    claims = [
        rows.claimed(by=rows.process(hostname=name, silent_for=long_ago), attempts=1)
        for name in ODD_NAMES
    ]
    supervisor = supervised(**WATCHFUL).until_up()
    supervisor.until(lambda: FailedExecution.objects.count() == len(claims))
    classes = FailedExecution.objects.values_list("exception_class", flat=True)
    assert set(classes) == {PRUNED_ERROR}


def test_a_supervisor_may_live_on_an_odd_host(hostile):
    result = mark.enqueue("it")
    name = f"{ODD_NAMES[1]} {ODD_NAMES[2]} caf\udce9 {'x' * 200}"
    supervisor = hostile(obstacles={"live_at": name}).until_up()
    supervisor.until(lambda: are("finished", result), "it has run")
    assert supervisor.stop() == ExitCode.DONE
    assert not Process.objects.exists()


# ── Processes that sleep ───────────────────────────────────────────────────────


def test_a_worker_that_is_stopped_for_long_is_ended_by_its_supervisor(hostile):
    supervisor = hostile(
        workers=ONE_THREAD, obstacles={"watch_early": 1.5}, **WATCHFUL
    ).until_up()
    result = tick.enqueue("it", 1)
    supervisor.until(marks, "it has begun")
    (sleeper,) = supervisor.pids()
    os.kill(sleeper, SIGSTOP)
    supervisor.until(lambda: not is_alive(sleeper), "the sleeper is ended")
    assert "its heartbeats did not reach the database" in supervisor.log
    supervisor.until(lambda: are("finished", result), "it has run again")
    assert attempts_of(result) == [(1, EXIT_ERROR)]
    assert _last_of(sleeper) < _first_of_others(sleeper)
    assert supervisor.stop() == ExitCode.DONE


def test_workers_that_wake_too_late_leave_and_change_nothing(hostile):
    first = hostile(workers=TWO_PROCESSES, **WATCHFUL).until_up(2)
    again, once = tick.enqueue("again", 4), rest.enqueue("once", 5)
    first.until(lambda: marks("again") and marks("once"), "both have begun")
    sleepers = ticker, rester = pid_of("again"), pid_of("once begins")
    for pid in (first.pid, *sleepers):
        os.kill(pid, SIGSTOP)
    second = hostile(workers=ONE_THREAD, **WATCHFUL).until_up()
    second.until(lambda: attempts_of(again), "one was declared dead")
    second.until(lambda: are("failed", once), "so was the other")
    second.until(lambda: len(set(_pids("again"))) == 2, "the first runs again")
    # Three thresholds since the last heartbeat, all in all.
    until(lambda: _silence_of(ticker) > 6, "three thresholds have passed")
    woken = Mark.objects.latest("pk").at
    for pid in sleepers:
        os.kill(pid, SIGCONT)
    until(lambda: not any(map(is_alive, sleepers)), "they have left", timeout=4)
    # No process can help a breath between its waking and its leaving.
    assert (_last_of(ticker) - woken).total_seconds() < 0.5
    os.kill(first.pid, SIGCONT)
    # Whichever it notices first; what nobody runs again goes on until it is pruned.
    first.until(lambda: re.search(f":{ticker}@.* exited with code [56]", first.log))
    first.until(lambda: re.search(f":{rester}@.* exited with code 5", first.log))
    first.until(lambda: len(set(first.pids()) - {*sleepers}) == 2, "successors are up")
    second.until(lambda: are("finished", again), "the first has finished")
    assert attempts_of(again) == [(1, PRUNED_ERROR)]
    assert FinishedExecution.objects.get(pk=again.id).attempts == 2
    assert error_of(once).exception_class == PRUNED_ERROR
    assert states()
    assert first.stop() == second.stop() == ExitCode.DONE
    assert not Process.objects.exists()


def _pids(label):
    return Mark.objects.filter(label=label).values_list("pid", flat=True)


def _last_of(pid):
    return Mark.objects.filter(pid=pid).latest("pk").at


def _first_of_others(pid):
    return Mark.objects.exclude(pid=pid).earliest("pk").at


def _silence_of(pid):
    return (timezone.now() - _last_of(pid)).total_seconds()


def test_a_task_that_holds_the_interpreter_is_ended_with_a_reason(hostile):
    result = hold_on_to_the_interpreter.enqueue(60)
    supervisor = hostile(obstacles={"watch_early": 1.5}, **WATCHFUL).until_up()
    supervisor.until(lambda: are("failed", result), "it has failed")
    assert error_of(result).exception_class == EXIT_ERROR
    assert "heartbeats did not reach the database" in error_of(result).message
    after = mark.enqueue("after")
    supervisor.until(lambda: are("finished", after), "a successor works")
    assert supervisor.stop() == ExitCode.DONE


@pytest.mark.parametrize("moment", ["hang_before_registering", "hang_before_working"])
def test_a_child_that_is_stuck_in_boot_is_replaced(hostile, obstacle, moment):
    result = mark.enqueue("at last")
    supervisor = hostile(
        process_boot_timeout=0.8,
        obstacles={moment: str(obstacle), "watch_early": 1.5},
    )
    supervisor.until(lambda: "it did not finish booting" in supervisor.log)
    obstacle.unlink()
    supervisor.until(lambda: are("finished", result), "a successor works")
    assert supervisor.stop() == ExitCode.DONE
    assert not Process.objects.exists()


# ── A supervisor dies ──────────────────────────────────────────────────────────


def test_orphans_finish_what_takes_longer_than_a_stop_may(hostile, obstacle):
    result = wait_for.enqueue(str(obstacle))
    gone = hostile(shutdown_timeout=0.2).until_up()
    gone.until(marks, "it has begun")
    (orphan,) = gone.pids()
    gone.send(SIGKILL)
    gone.wait()
    # The file is no obstacle, although the orphan still lives.
    heir = hostile("--pidfile", str(gone.pidfile)).until_up()
    assert gone.pidfile.read_text() == f"{heir.pid}\n"
    assert is_alive(orphan)
    assert are("claimed", result)
    obstacle.unlink()
    heir.until(lambda: are("finished", result), "it has finished")
    assert pid_of("ends") == orphan
    heir.until(lambda: not is_alive(orphan), "the orphan has left")
    assert marks() == ["begins", "ends"]
    assert not ClaimedExecution.objects.exists()
    assert heir.stop() == ExitCode.DONE
