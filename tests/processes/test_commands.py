"""``manage.py robust_queue`` as operators and their tools use it."""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGQUIT, SIGTERM

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

import robust_queue
from robust_queue.lifecycle.pause import pause, resume
from robust_queue.models import (
    ClaimedExecution,
    Pause,
    Process,
    ReadyExecution,
)
from robust_queue.processes.exits import ExitCode
from tests.support.invariants import state_of
from tests.support.supervisors import ROOT, marks
from tests.testapp.process_tasks import mark, rest

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def are(state, *results):
    return all(state_of(each) == state for each in results)


def session_of(supervisor):
    """Every process that the supervisor, or a child of it, has started and that lives.

    They share its session, whoever their parent is by now.
    """
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _parent, _group, session, *_ = _fields(stat)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == supervisor.pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def is_at_rest(supervisor, seconds=1):
    """It waits, it does not spin: the processor has hardly anything to do with it."""
    before = _work_of(supervisor)
    time.sleep(seconds)  # what is measured is how little it does meanwhile
    return _work_of(supervisor) - before < seconds / 10


def _work_of(supervisor):
    fields = _fields(Path(f"/proc/{supervisor.pid}/stat"))
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def _fields(stat):
    return stat.read_text().rpartition(")")[2].split()


def command(*arguments):
    """Run the command to its end, as a shell would."""
    return subprocess.run(
        [sys.executable, "-m", "django", "robust_queue", *arguments],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.process_settings",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


# ── The banner ─────────────────────────────────────────────────────────────────


def test_the_banner_says_what_will_happen(supervised):
    supervisor = supervised(
        workers=[
            {"queues": ["mail", "tenant*"], "threads": 2, "processes": 2},
            {"queues": "*", "threads": 1, "coroutines": 0},
        ],
        dispatchers=[{"polling_interval": 0.5, "batch_size": 50}],
        shutdown_timeout=7,
    ).until_up(3)
    told = supervisor.log
    assert f"Robust Queue {robust_queue.__version__}" in told
    assert f"default in database 'default' ({connection.display_name} " in told
    assert "2 processes of 2 threads and 100 coroutines, queues mail, tenant*" in told
    assert "1 process of 1 thread, queues *" in told
    assert "every 0.5 s, up to 50 jobs at once" in told
    assert "none, until a task is made to recur" in told
    assert "the smallest number first" in told
    assert re.search(r"tasks +\d+ found", told)
    assert "running tasks have 7 s to finish" in told
    assert "QUIT" in told
    assert supervisor.stop() == ExitCode.DONE


def test_a_start_tells_of_queues_that_will_be_left_alone(supervised):
    mark.using(queue_name="forgotten").enqueue("forgotten")
    mark.using(queue_name="resting").enqueue("resting")
    mark.using(queue_name="served").enqueue("served")
    pause("default", "resting")
    supervisor = supervised(
        workers=[{"queues": ["served", "resting"], "polling_interval": 0.05}]
    ).until_up()
    supervisor.until(lambda: marks() == ["served"], "what is served has run")
    assert "Queue 'forgotten' has ready jobs, and no worker" in supervisor.log
    assert "robust_queue resume resting" in supervisor.log
    assert "'served'" not in supervisor.log
    assert supervisor.stop() == ExitCode.DONE
    assert sorted(ReadyExecution.objects.values_list("queue_name", flat=True)) == [
        "forgotten",
        "resting",
    ]


# ── The pidfile ────────────────────────────────────────────────────────────────


def test_a_second_supervisor_is_refused_and_does_not_disturb_the_first(
    supervised, tmp_path
):
    path = tmp_path / "not" / "yet" / "there" / "supervisor.pid"
    first = supervised("--pidfile", str(path)).until_up()
    first.until(lambda: len(first.rows()) == 2, "its dispatcher is up as well")
    assert path.read_text() == f"{first.pid}\n"
    first.until(lambda: len(first.rows()) == 2, "its dispatcher is up, too")
    rows_before = set(Process.objects.values_list("pk", flat=True))
    second = supervised("--pidfile", str(path))
    assert second.wait() == 1
    assert f"Another supervisor is running, process {first.pid}" in second.log
    assert str(path) in second.log
    assert "Traceback" not in second.log.partition("Another supervisor")[2]
    assert path.read_text() == f"{first.pid}\n"
    assert set(Process.objects.values_list("pk", flat=True)) == rows_before
    result = mark.enqueue("it")
    first.until(lambda: are("finished", result), "the first works on")
    assert first.stop() == ExitCode.DONE
    assert not path.exists()


def test_a_stale_pidfile_is_no_obstacle(supervised, tmp_path):
    path = tmp_path / "supervisor.pid"
    # Of a process that lives, but is no supervisor.
    path.write_text(f"{os.getpid()}\n and much more than a number")
    supervisor = supervised("--pidfile", str(path)).until_up()
    assert path.read_text() == f"{supervisor.pid}\n"
    supervisor.send(SIGKILL)
    supervisor.wait()
    assert path.exists()
    heir = supervised("--pidfile", str(path)).until_up()
    assert path.read_text() == f"{heir.pid}\n"
    assert heir.stop() == ExitCode.DONE
    assert not path.exists()


def test_a_file_that_took_its_place_is_not_removed(supervised, tmp_path):
    path = tmp_path / "supervisor.pid"
    supervisor = supervised("--pidfile", str(path)).until_up()
    path.unlink()
    path.write_text("somebody else's")
    assert supervisor.stop() == ExitCode.DONE
    assert path.read_text() == "somebody else's"


def test_a_pidfile_that_cannot_be_written_is_an_error(supervised, tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    supervisor = supervised("--pidfile", str(in_the_way / "supervisor.pid"))
    assert supervisor.wait() == 1
    assert "CommandError" in supervisor.log
    assert not Process.objects.exists()


def test_no_pidfile_is_written_if_none_is_wanted(supervised, tmp_path):
    first = supervised("--pidfile", "").until_up()
    second = supervised("--pidfile", "").until_up()
    assert first.stop() == second.stop() == ExitCode.DONE
    assert not list(tmp_path.rglob("*.pid"))


# ── Until empty ────────────────────────────────────────────────────────────────


def test_until_empty_runs_what_there_is_and_ends(supervised):
    now = timezone.now()
    due = [
        mark.using(run_after=now + timedelta(seconds=0.1)).enqueue(f"due {n}")
        for n in range(5)
    ]
    ready = [mark.using(queue_name=f"queue_{n}").enqueue(f"{n}") for n in range(5)]
    slow = rest.enqueue("slow", 1)
    later = mark.using(run_after=now + timedelta(hours=1)).enqueue("later")
    paused = mark.using(queue_name="resting").enqueue("paused")
    pause("default", "resting")
    supervisor = supervised("--until-empty")
    assert supervisor.wait(15) == ExitCode.DONE
    assert are("finished", *due, *ready, slow)
    assert are("scheduled", later)
    assert are("ready", paused)
    assert "nothing is left to do" in supervisor.log
    assert not Process.objects.exists()
    assert not ClaimedExecution.objects.exists()


def test_until_empty_with_nothing_to_do_ends_at_once(supervised):
    supervisor = supervised("--until-empty")
    assert supervisor.wait(10) == ExitCode.DONE
    assert not Process.objects.exists()


def test_until_empty_waits_for_its_own_queues_only(supervised):
    own = mark.using(queue_name="own").enqueue("own")
    foreign = mark.using(queue_name="foreign").enqueue("foreign")
    late = mark.using(queue_name="foreign", run_after=timezone.now()).enqueue("late")
    supervisor = supervised(
        "--until-empty", workers=[{"queues": "own", "polling_interval": 0.05}]
    )
    assert supervisor.wait(10) == ExitCode.DONE
    assert are("finished", own)
    assert not are("finished", foreign)
    assert not are("finished", late)


# ── What is not there yet ──────────────────────────────────────────────────────


@contextmanager
def unmigrated():
    """As if the migrations of the queue had not been applied."""
    rows = MigrationRecorder.Migration.objects.filter(app="robust_queue")
    before = list(rows)
    rows.delete()

    def restore():
        missing = [row for row in before if not rows.filter(name=row.name).exists()]
        MigrationRecorder.Migration.objects.bulk_create(missing)

    try:
        yield restore
    finally:
        restore()


def test_it_waits_for_migrations(supervised):
    result = mark.enqueue("it")
    with unmigrated() as migrate:
        supervisor = supervised()
        supervisor.until(lambda: "manage.py migrate" in supervisor.log)
        assert "0001_initial" in supervisor.log
        assert is_at_rest(supervisor)
        assert are("ready", result)
        assert not Process.objects.exists()
        migrate()
        supervisor.until(lambda: are("finished", result), "it has run")
        assert supervisor.stop() == ExitCode.DONE


@pytest.mark.parametrize("number", [SIGTERM, SIGQUIT])
def test_it_stops_while_it_waits_for_migrations(supervised, number):
    with unmigrated():
        supervisor = supervised()
        supervisor.until(lambda: "manage.py migrate" in supervisor.log)
        quit_or_done = ExitCode.QUIT if number is SIGQUIT else ExitCode.DONE
        assert supervisor.stop(number, timeout=5) == quit_or_done
    assert not supervisor.pidfile.exists()


@pytest.fixture
def nowhere(tmp_path):
    """Where no database is."""
    if connection.vendor == "sqlite":
        return {"NAME": str(tmp_path / "no such folder" / "database")}
    return {"HOST": "127.0.0.1", "PORT": "1"}


def test_it_waits_for_a_database_that_is_out_of_reach(supervised, nowhere):
    supervisor = supervised(settings={"database": nowhere})
    supervisor.until(lambda: "The database is out of reach" in supervisor.log)
    if connection.vendor != "sqlite":  # which tells its version in any case
        assert "out of reach)" in supervisor.log
    assert is_at_rest(supervisor)
    assert supervisor.process.poll() is None
    assert supervisor.stop(timeout=8) == ExitCode.DONE
    assert not session_of(supervisor)
    assert not supervisor.pidfile.exists()


# ── Signals while it starts ────────────────────────────────────────────────────

# Died of it, before there was anything to clean up; or stopped as asked.
ENDS = {
    SIGTERM: {-SIGTERM, ExitCode.DONE},
    SIGINT: {-SIGINT, 1, ExitCode.DONE, ExitCode.QUIT},
    SIGQUIT: {-SIGQUIT, ExitCode.QUIT},
}


@pytest.mark.parametrize("delay", [0, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5])
def test_a_signal_during_the_start_always_ends_it(supervised, delay):
    started = {number: supervised() for number in ENDS}
    time.sleep(delay)  # there is no fact to wait for: any moment will do
    for number, supervisor in started.items():
        supervisor.send(number)
    for number, supervisor in started.items():
        assert _end(supervisor, number) in ENDS[number], supervisor.log
        supervisor.until(lambda it=supervisor: not session_of(it), "nobody is left")
    assert not Process.objects.exists()


def _end(supervisor, number):
    try:
        return supervisor.wait(5)
    except AssertionError:
        if number is not SIGINT:
            raise
        # An interpreter that is about to start may swallow one: press the keys again.
        return supervisor.stop(number, timeout=5)


def _has_children(supervisor):
    return len(session_of(supervisor)) > 1


MOMENTS = {
    "pidfile": lambda it: it.pidfile.exists() and it.pidfile.read_text(),
    "banner": lambda it: "to stop" in it.log,
    "row": lambda it: Process.objects.filter(kind="Supervisor").exists(),
    "child": _has_children,
    "worker": lambda it: Process.objects.filter(kind="Worker").exists(),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_at_any_step_of_the_start_leaves_nothing_behind(supervised, moment):
    mark.enqueue("it")
    supervisor = supervised(workers=[{"processes": 3, "threads": 1}])
    supervisor.until(lambda: MOMENTS[moment](supervisor), moment)
    assert supervisor.stop(timeout=10) in ENDS[SIGTERM], supervisor.log
    assert not session_of(supervisor)
    assert not Process.objects.exists()
    assert not ClaimedExecution.objects.exists()
    if moment != "pidfile":
        assert not supervisor.pidfile.exists()


# ── Verbs ──────────────────────────────────────────────────────────────────────


def test_pause_and_resume(transactional_db):
    paused = command("pause", "mail")
    assert paused.returncode == 0
    assert "Queue 'mail' is paused." in paused.stdout
    assert Pause.objects.filter(pk="mail").exists()
    assert "already paused" in command("pause", "mail").stdout
    resumed = command("resume", "mail")
    assert resumed.returncode == 0
    assert "Queue 'mail' is open." in resumed.stdout
    assert not Pause.objects.exists()
    assert "already open" in command("resume", "mail").stdout


def test_a_bad_name_is_refused(transactional_db):
    for verb, name in ("pause", "mail*"), ("resume", ""), ("pause", "x" * 200):
        told = command(verb, name)
        assert told.returncode == 1
        assert "CommandError: Queue" in told.stderr
    assert not Pause.objects.exists()
    assert command("pause").returncode == 2


@pytest.mark.parametrize("arguments", [(), ("pause", "mail")])
def test_a_database_without_a_queue_is_refused(transactional_db, arguments):
    told = command("--database", "elsewhere", *arguments)
    assert told.returncode == 1
    assert "Database 'elsewhere' holds no queue. Choose from: default." in told.stderr
    assert not Pause.objects.exists()


def test_the_doctor_tells_whether_all_is_well(supervised):
    nobody = command("doctor")
    assert nobody.returncode == 1
    assert "No worker is alive" in nobody.stdout
    supervisor = supervised().until_up()
    supervisor.until(lambda: Process.objects.filter(kind="Dispatcher").exists())
    well = command("doctor", "--deep")
    assert well.returncode == 0
    assert "Everything is as it should be." in well.stdout
    result = mark.using(queue_name="nobody").enqueue("it")
    supervisor.until(lambda: are("finished", result))
    ReadyExecution.objects.create(
        job_id=result.id, queue_name="x", priority=0, created_at=timezone.now()
    )
    broken = command("doctor", "--deep")
    assert broken.returncode == 1
    assert str(result.id) in broken.stdout
    ReadyExecution.objects.all().delete()
    assert supervisor.stop() == ExitCode.DONE


def test_verbs_take_effect_on_a_running_supervisor(supervised):
    supervisor = supervised().until_up()
    assert command("pause", "default").returncode == 0
    result = mark.enqueue("it")
    other = mark.using(queue_name="other").enqueue("other")
    supervisor.until(lambda: are("finished", other), "others run")
    assert are("ready", result)
    resume("default", "default")
    supervisor.until(lambda: are("finished", result), "it has run")
