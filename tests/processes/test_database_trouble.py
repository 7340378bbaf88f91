"""The database goes away, comes back, hangs up and changes its mind.

Nobody exits for that, nothing is lost, nothing is done twice, and when it is over all
goes on as before.
"""

import os
import time
from contextlib import contextmanager
from datetime import timedelta
from signal import SIGCONT, SIGKILL, SIGSTOP

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone

from robust_queue import enqueue_all
from robust_queue.lifecycle.pause import pause, resume
from robust_queue.models import (
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    Job,
    Process,
    ReadyExecution,
)
from robust_queue.processes.exits import ExitCode
from tests.settings import KIND
from tests.support.invariants import state_of, states
from tests.support.lossy_line import lossy_line
from tests.support.supervisors import is_alive, marks, until
from tests.testapp.witnessed_tasks import (
    again,
    long_at_first,
    once,
    store,
    store_once,
    tell_session,
    turn_read_only,
)

on_a_server = pytest.mark.skipif(KIND == "sqlite", reason="SQLite has no server")
on_postgresql = pytest.mark.skipif(KIND != "postgresql", reason="of PostgreSQL only")
on_sqlite = pytest.mark.skipif(KIND != "sqlite", reason="of SQLite only")

TWO_WORKERS = [{"threads": 3, "processes": 2, "polling_interval": 0.05}]
THREE_THREADS = [{"threads": 3, "polling_interval": 0.05}]
ONE_THREAD = [{"threads": 1, "polling_interval": 0.05}]


def labels(prefix, count):
    return [f"{prefix}-{n}" for n in range(count)]


def enqueued(task, names, *args):
    return enqueue_all(task.bind(name, *args) for name in names)


def children_of(supervisor, workers=1):
    """The numbers of its workers and its dispatcher, once they are up."""
    expected = workers + 1
    rows = supervisor.until(
        lambda: len(found := supervisor.rows()) == expected and found, "all are up"
    )
    return sorted(row.pid for row in rows)


def are_all_finished(using="default"):
    failed = FailedExecution.objects.using(using).values_list("traceback", flat=True)
    assert not failed, failed[0]
    finished = FinishedExecution.objects.using(using).count()
    return finished == Job.objects.using(using).count()


def terminate_connections():
    """End every session of this database but the test's own; return how many."""
    ask, end = {
        "postgresql": (
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid()",
            "SELECT pg_terminate_backend({})",
        ),
        "mysql": (
            "SELECT id FROM information_schema.processlist WHERE db = DATABASE()"
            " AND id <> CONNECTION_ID()",
            "KILL {}",
        ),
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(ask)
        sessions = [session for (session,) in cursor.fetchall()]
        for session in sessions:
            # It may have left by itself.
            with suppress_unknown_session():
                cursor.execute(end.format(session))
    return len(sessions)


@contextmanager
def suppress_unknown_session():
    try:
        yield
    except OperationalError as error:
        if error.args[0] != 1094:
            raise


# ── A server that is stopped and started ───────────────────────────────────────


@on_a_server
@pytest.mark.parametrize("by_crash", [False, True], ids=["in-order", "by-crash"])
def test_a_restart_under_load(witnessed, witness, server, by_crash):
    before = labels("before", 400)
    enqueued(once, before, 0.01)
    supervisor = witnessed(
        settings=server.settings, workers=TWO_WORKERS, process_alive_threshold=20
    )
    children = children_of(supervisor, workers=2)
    supervisor.until(lambda: len(witness.count("ends")) > 80, "it is under load")

    server.stop(by_crash=by_crash)
    server.start()
    supervisor.until(are_all_finished, "all that was enqueued before is finished")

    after = labels("after", 100)
    enqueued(once, after)
    supervisor.until(are_all_finished, "full speed again", timeout=10)
    assert children_of(supervisor, workers=2) == children
    assert "replaced" not in supervisor.log
    assert supervisor.stop() == ExitCode.DONE
    assert_each_ran_once(witness, [*before, *after])


@on_a_server
@pytest.mark.parametrize("trouble", ["stopped", "frozen"])
def test_an_outage_longer_than_the_threshold(witnessed, witness, server, trouble):
    def supervise(queue):
        workers = [{"queues": queue, "threads": 3, "polling_interval": 0.05}]
        return witnessed(settings=server.settings, workers=workers).until_up()

    runs_again, fails = supervise("again"), supervise("fail")
    repeated = long_at_first.using(queue_name="again").enqueue("repeated", 60)
    unique = once.using(queue_name="fail").enqueue("unique", 4)
    until(lambda: witness.has("begins", "repeated", "unique"), "both have begun")
    (fenced,), (trusted,) = runs_again.pids(), fails.pids()

    server.stop() if trouble == "stopped" else server.freeze()
    begun = time.monotonic()
    until(lambda: not is_alive(fenced), "what may be run again has ended its worker")
    until(lambda: witness.has("ends", "unique"), "what fails in a crash has ended")
    until(lambda: time.monotonic() > begun + 4, "longer than the threshold")
    server.start() if trouble == "stopped" else server.thaw()

    fails.until(lambda: state_of(unique) == "finished", "its outcome was kept")
    runs_again.until(lambda: state_of(repeated) == "finished", "it was run again")
    for queue in ("again", "fail"):
        enqueued(once.using(queue_name=queue), labels(queue, 20))
    fails.until(are_all_finished, "everything is processed again")
    # Both have had the time to prune the other.
    until(
        lambda: all(
            row.last_heartbeat_at.timestamp() > row.created_at.timestamp() + 1
            for row in Process.objects.all()
        ),
        "all beat",
    )

    executions = witness.executions()
    first, second = executions["repeated"]
    assert first.ended is None
    assert (first.pid, second.pid) == (fenced, *runs_again.pids())
    assert len(executions["unique"]) == 1
    assert fails.pids() == [trusted]
    assert "replaced" not in fails.log
    for each in (runs_again, fails):
        assert "struck off" not in each.log
        assert each.stop() == ExitCode.DONE


@on_a_server
def test_a_stop_while_the_server_does_not_answer(witnessed, witness, server):
    once.enqueue("it", 60)
    supervisor = witnessed(settings=server.settings, shutdown_timeout=1)
    children = children_of(supervisor)
    supervisor.until(lambda: witness.has("begins", "it"), "it has begun")
    supervisor.until(has_beaten, "its connections are open")
    server.freeze()
    try:
        assert supervisor.stop(timeout=60) == ExitCode.UNRECORDED
        assert not any(map(is_alive, children))
    finally:
        server.thaw()


def has_beaten():
    (row,) = Process.objects.filter(kind="Supervisor")
    return row.last_heartbeat_at - row.created_at > timedelta(seconds=1)


def assert_each_ran_once(witness, names):
    assert witness.count("begins") == dict.fromkeys(names, 1)
    assert witness.count("ends") == dict.fromkeys(names, 1)
    assert not ClaimedExecution.objects.exists()
    attempts = FinishedExecution.objects.values_list("attempts", flat=True)
    assert list(attempts) == [1] * len(names)


# ── Connections that are hung up ───────────────────────────────────────────────


@on_a_server
def test_connections_terminated_at_random_under_load(witnessed, witness):
    quiet, storing = labels("quiet", 500), labels("storing", 250)
    enqueue_all(
        call
        for n in range(250)
        for call in (
            once.bind(quiet[2 * n], 0.01),
            store.bind(storing[n]),
            once.bind(quiet[2 * n + 1], 0.01),
        )
    )
    supervisor = witnessed(workers=TWO_WORKERS, process_alive_threshold=20)
    children = children_of(supervisor, workers=2)
    terminated = 0
    for round_ in range(15):
        terminated += terminate_connections()
        done = len(witness.count("ends"))
        # The next time while they are at it again, whatever that takes.
        supervisor.until(
            lambda done=done: len(witness.count("ends")) > done or are_all_finished(),
            f"they go on after round {round_}",
        )

    supervisor.until(are_all_finished, "nothing is lost and nothing is stuck")
    assert terminated > 30
    assert children_of(supervisor, workers=2) == children
    assert "replaced" not in supervisor.log
    counted = witness.count("begins")
    assert {name: counted[name] for name in quiet} == dict.fromkeys(quiet, 1)
    assert set(marks()) == set(storing)
    assert supervisor.stop() == ExitCode.DONE
    assert set(witness.count("announced").values()) == {1}
    assert set(witness.count("announced")) == {*quiet, *storing}


@on_a_server
def test_replies_that_get_lost(witnessed, witness):
    """What the server has done is neither done again nor forgotten."""
    names = labels("it", 300)
    enqueued(once, names, 0.02)
    with lossy_line(probability=0.1) as line:
        supervisor = witnessed(
            settings=line.settings, workers=TWO_WORKERS, process_alive_threshold=20
        )
        children = children_of(supervisor, workers=2)
        supervisor.until(are_all_finished, "nothing is lost and nothing is stuck")
        supervisor.until(lambda: len(witness.count("announced")) == len(names))
        assert children_of(supervisor, workers=2) == children
        assert supervisor.stop() == ExitCode.DONE
    assert line.lost > 10
    assert "claims whose reply was lost went back" in supervisor.log
    assert "no longer this worker's" not in supervisor.log
    assert_each_ran_once(witness, names)
    assert witness.count("announced") == dict.fromkeys(names, 1)


@on_a_server
def test_the_first_query_after_a_connection_was_lost_while_idle(witnessed):
    before = store_once.enqueue("before")
    supervisor = witnessed(workers=ONE_THREAD).until_up()
    supervisor.until(lambda: state_of(before) == "finished")
    ended = time.monotonic()
    supervisor.until(lambda: time.monotonic() > ended + 1.2, "it is idle")
    assert terminate_connections()
    after = store_once.enqueue("after")
    supervisor.until(lambda: state_of(after) in {"finished", "failed"}, "it has run")
    assert state_of(after) == "finished"
    assert supervisor.stop() == ExitCode.DONE


@on_postgresql
def test_a_worker_that_slept_over_its_claims_begins_none_of_them(witnessed, witness):
    options = {"workers": THREE_THREADS, "process_alive_threshold": 2}
    names = labels("it", 3)
    pause("default", "default")
    enqueued(again, names)
    sleeper = witnessed(**options).until_up()
    (worker,) = sleeper.pids()
    with locked_ready_rows():
        resume("default", "default")
        sleeper.until(is_claim_waiting, "the worker waits for its claims")
        # The supervisor first, which would see to it.
        sleeper.send(SIGSTOP)
        os.kill(worker, SIGSTOP)
    until(lambda: ClaimedExecution.objects.count() == 3, "the claims are granted")

    other = witnessed(**options).until_up()
    other.until(are_all_finished, "the jobs are done elsewhere")
    os.kill(worker, SIGCONT)
    until(lambda: not is_alive(worker), "it finds itself struck off")
    sleeper.send(SIGCONT)
    sleeper.until(lambda: set(sleeper.pids()) - {worker}, "it has a successor")
    for each in (sleeper, other):
        assert each.stop() == ExitCode.DONE
    assert witness.count("begins") == dict.fromkeys(names, 1)


@contextmanager
def locked_ready_rows():
    holder = connections.create_connection("default")
    holder.set_autocommit(False)
    with holder.cursor() as cursor:
        table = ReadyExecution._meta.db_table
        cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
    try:
        yield
    finally:
        holder.close()


def is_claim_waiting():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event_type = 'Lock' AND query LIKE '%poll0%'"
        )
        return cursor.fetchone()


# ── Servers that have become read-only ─────────────────────────────────────────


@on_postgresql
def test_a_server_that_is_read_only_for_a_while(witnessed, witness, server):
    supervisor = witnessed(settings=server.settings)
    children = children_of(supervisor)
    with connection.cursor() as cursor:
        cursor.execute("ALTER DATABASE postgres SET default_transaction_read_only = on")
        terminate_connections()
        # This session is older than the change.
        names = labels("it", 20)
        enqueued(once, names)
        supervisor.until(
            lambda: supervisor.log.count("read-only transaction") >= 3,
            "the supervisor, the heart and the worker have met it",
        )
        assert not witness.events()
        cursor.execute("ALTER DATABASE postgres RESET default_transaction_read_only")
    supervisor.until(are_all_finished, "all is well again")
    assert children_of(supervisor) == children
    assert supervisor.stop() == ExitCode.DONE
    assert_each_ran_once(witness, names)


@on_postgresql
def test_a_session_that_has_become_read_only_harms_one_job(witnessed):
    supervisor = witnessed(workers=ONE_THREAD).until_up()
    turn_read_only.enqueue()
    first, second = store_once.enqueue("first"), store_once.enqueue("second")
    supervisor.until(lambda: state_of(second) in {"finished", "failed"})
    assert state_of(first) == "failed"
    assert state_of(second) == "finished"
    assert supervisor.stop() == ExitCode.DONE


# ── Connections of tasks ───────────────────────────────────────────────────────


@on_a_server
def test_jobs_do_not_open_a_connection_each(witnessed):
    results = enqueued(tell_session, labels("it", 60))
    supervisor = witnessed(
        settings={"database": {"CONN_MAX_AGE": 0}}, workers=THREE_THREADS
    )
    supervisor.until(are_all_finished)
    assert len(results) == len(marks())
    assert len({mark.split()[1] for mark in marks()}) <= 3
    assert supervisor.stop() == ExitCode.DONE


@on_postgresql
@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_a_pool_of_connections_and_forks(witnessed, witness, is_open):
    """Also one that was opened before the first fork."""
    modules = ["tests.testapp.querying_tasks"] if is_open else []
    supervisor = witnessed(
        settings={"database_options": {"pool": {"min_size": 2, "max_size": 4}}},
        task_modules=[*modules, *witness.options["task_modules"]],
        workers=TWO_WORKERS,
    ).until_up(workers=2)
    enqueued(store_once, labels("before", 60))
    supervisor.until(are_all_finished, "they work")
    victims = supervisor.pids()
    for victim in victims:
        os.kill(victim, SIGKILL)
    enqueued(store_once, labels("after", 60))
    supervisor.until(are_all_finished, "those who replace them work too")
    assert not {*victims} & {*supervisor.pids()}
    assert len(marks()) == 120
    assert supervisor.stop(timeout=10) == ExitCode.DONE
    assert "Traceback" not in supervisor.log.partition("Robust Queue")[2]


# ── A database apart ───────────────────────────────────────────────────────────


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_queue_in_a_database_apart(witnessed, witness):
    there = {"using": "other"}
    enqueued(store_once.using(backend="other"), labels("apart", 20))
    doomed = once.using(backend="other").enqueue("doomed", 60)
    here = store_once.enqueue("here")
    supervisor = witnessed("--database", "other", settings={"with_other": True})
    supervisor.until(lambda: witness.has("begins", "doomed") and len(marks()) == 20)
    worker = Process.objects.using("other").get(kind="Worker")
    os.kill(worker.pid, SIGKILL)
    supervisor.until(lambda: state_of(doomed, **there) == "failed", "it is recorded")
    (after,) = enqueued(store_once.using(backend="other"), ["after"])
    supervisor.until(lambda: state_of(after, **there) == "finished", "it goes on")
    assert supervisor.stop() == ExitCode.DONE
    assert state_of(here) == "ready"
    assert sorted(set(states(**there).values())) == ["failed", "finished"]
    assert sorted(marks()) == sorted([*labels("apart", 20), "after"])
    assert not Process.objects.using("other").exists()


# ── SQLite ─────────────────────────────────────────────────────────────────────


@on_sqlite
def test_several_processes_that_write_to_one_file(witnessed):
    now, later = labels("now", 400), labels("later", 100)
    soon = timezone.now() + timedelta(seconds=1)
    enqueued(store_once, now)
    enqueued(store_once.using(run_after=soon), later)
    supervisor = witnessed(workers=TWO_WORKERS).until_up(workers=2)
    supervisor.until(are_all_finished, "all have run", timeout=60)
    assert sorted(marks()) == sorted([*now, *later])
    assert "database is locked" not in supervisor.log
    assert supervisor.stop() == ExitCode.DONE


@on_sqlite
def test_a_file_that_is_locked_for_longer_than_the_threshold(witnessed, witness):
    unique = once.enqueue("unique", 2)
    supervisors = [witnessed() for _ in range(2)]
    children = [children_of(each) for each in supervisors]
    until(lambda: witness.has("begins", "unique"), "it has begun")
    with transaction.atomic():
        begun = time.monotonic()
        until(lambda: time.monotonic() > begun + 4, "longer than the threshold")
    supervisors[0].until(lambda: state_of(unique) == "finished", "its outcome was kept")
    names = labels("after", 20)
    enqueued(once, names)
    until(are_all_finished, "everything is processed again")
    for supervisor, before in zip(supervisors, children, strict=True):
        assert children_of(supervisor) == before
        assert "struck off" not in supervisor.log
        assert supervisor.stop() == ExitCode.DONE
    assert_each_ran_once(witness, ["unique", *names])
