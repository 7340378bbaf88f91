"""Reload in development: code is edited while a supervisor runs it."""

import os
import sys
from importlib import import_module
from signal import SIGINT, SIGTERM

import pytest
from django.utils.autoreload import autoreload_started

from robust_queue.models import Process
from robust_queue.processes.exits import ExitCode
from robust_queue.processes.reload import Files
from tests.processes.test_commands import session_of
from tests.support import rows
from tests.support.invariants import state_of
from tests.support.supervisors import marks

CODE = """
import time
from pathlib import Path

from robust_queue import task
from tests.testapp.process_tasks import leave_mark


@task
def say():
    leave_mark("VERSION")


@task
def hold():
    leave_mark("held")
    while not Path("go").exists():
        time.sleep(0.02)
    leave_mark("let go of by VERSION")
"""
BROKEN = "def say(:\n"
MAKING_WAY = "edited.py has changed: reloading, running tasks finish first."


class Project:
    """A supervisor and the module of its tasks, which can be edited."""

    def __init__(self, folder, supervised):
        self.folder = folder
        self._supervised = supervised

    def edit(self, version):
        self._write(CODE.replace("VERSION", version))

    def spoil(self):
        self._write(BROKEN)

    def _write(self, code):
        # In one step, as good editors do: half a file would be broken code.
        fresh = self.folder / "edited.py.new"
        fresh.write_text(code)
        fresh.replace(self.folder / "edited.py")

    def run(self, *arguments, **options):
        return self._supervised(
            *("--reload", *arguments),
            task_modules=["edited"],
            # Without it a module of the test project cannot be loaded.
            settings={"with_other": True},
            # The date of a compiled file counts whole seconds.
            environment={"PYTHONDONTWRITEBYTECODE": "1"},
            **options,
        ).until_up()

    def let_go(self):
        (self.folder / "go").touch()


@pytest.fixture
def project(tmp_path, supervised):
    project = Project(tmp_path, supervised)
    project.edit("old code")
    return project


def enqueue(name):
    job = rows.job(task_path=f"edited.{name}", arguments='{"args":[],"kwargs":{}}')
    rows.ready(job)
    return job


def until_said(supervisor, what):
    supervisor.until(lambda: what in marks(), what)


def starts_of(supervisor):
    return supervisor.log.count("Robust Queue 0.")


def children_of(supervisor):
    """A worker and a dispatcher, once both are up."""
    rows = supervisor.until(
        lambda: len(found := supervisor.rows()) == 2 and found, "both are up"
    )
    return {row.pid for row in rows}


# ── Real supervisors ───────────────────────────────────────────────────────────


def test_the_next_job_runs_the_new_code_in_the_same_supervisor(project):
    supervisor = project.run()
    assert "reload      when code changes" in supervisor.log
    enqueue("say")
    until_said(supervisor, "old code")
    pid, before = supervisor.pid, children_of(supervisor)
    project.edit("new code")
    supervisor.until(lambda: starts_of(supervisor) == 2, "it has started anew")
    supervisor.until_up()
    enqueue("say")
    until_said(supervisor, "new code")
    assert supervisor.process.poll() is None
    assert supervisor.pidfile.read_text() == f"{pid}\n"
    assert not before & children_of(supervisor)
    assert not before & set(session_of(supervisor))
    assert supervisor.stop() == ExitCode.DONE
    assert MAKING_WAY in supervisor.log
    assert not Process.objects.exists()
    assert not supervisor.pidfile.exists()


def test_running_tasks_finish_first_however_long_they_take(project):
    # Whoever has a time limit is out of time at once.
    supervisor = project.run(shutdown_timeout=0)
    held = enqueue("hold")
    until_said(supervisor, "held")
    project.edit("new code")
    supervisor.until(lambda: not supervisor.pids("Dispatcher"), "all others are gone")
    waiting = enqueue("say")
    assert state_of(held) == "claimed"
    assert state_of(waiting) == "ready"
    assert starts_of(supervisor) == 1
    project.let_go()
    until_said(supervisor, "new code")
    assert marks() == ["held", "let go of by old code", "new code"]
    assert state_of(held) == "finished"
    assert supervisor.stop() == ExitCode.DONE


def test_code_that_does_not_load_is_told_and_the_old_code_goes_on(project):
    supervisor = project.run()
    before = children_of(supervisor)
    project.spoil()
    supervisor.until(lambda: "cannot be loaded" in supervisor.log)
    assert "SyntaxError" in supervisor.log
    enqueue("say")
    until_said(supervisor, "old code")
    assert children_of(supervisor) == before
    assert MAKING_WAY not in supervisor.log
    project.edit("mended code")
    supervisor.until(lambda: starts_of(supervisor) == 2, "it has started anew")
    enqueue("say")
    until_said(supervisor, "mended code")
    assert supervisor.stop() == ExitCode.DONE


def test_what_is_spoilt_while_tasks_finish_is_not_started(project):
    supervisor = project.run()
    enqueue("hold")
    until_said(supervisor, "held")
    project.edit("new code")
    supervisor.until(lambda: MAKING_WAY in supervisor.log)
    project.spoil()
    supervisor.until(lambda: "cannot be loaded" in supervisor.log)
    project.let_go()
    enqueue("say")
    until_said(supervisor, "old code")
    assert "let go of by old code" in marks()
    assert starts_of(supervisor) == 1
    project.edit("newer code")
    supervisor.until(lambda: starts_of(supervisor) == 2, "it has started anew")
    enqueue("say")
    until_said(supervisor, "newer code")
    assert supervisor.stop() == ExitCode.DONE


def test_a_stop_while_tasks_finish_has_its_own_time_limit(project):
    supervisor = project.run(shutdown_timeout=0.5)
    held = enqueue("hold")
    until_said(supervisor, "held")
    project.edit("new code")
    supervisor.until(lambda: MAKING_WAY in supervisor.log)
    assert supervisor.stop(SIGTERM) == ExitCode.LEFT_BEHIND
    assert state_of(held) == "ready"
    assert starts_of(supervisor) == 1
    assert not session_of(supervisor)


def test_keys_pressed_while_tasks_finish_act_as_always(project):
    supervisor = project.run(shutdown_timeout=60)
    held = enqueue("hold")
    until_said(supervisor, "held")
    project.edit("new code")
    supervisor.until(lambda: MAKING_WAY in supervisor.log)
    # As a terminal does it, to all of them.
    os.killpg(supervisor.pid, SIGINT)
    supervisor.until(lambda: "Stopping (received SIGINT)" in supervisor.log)
    assert supervisor.process.poll() is None
    assert supervisor.stop(SIGINT) == ExitCode.QUIT
    assert state_of(held) == "ready"


@pytest.mark.parametrize(
    ("debug", "options", "reloads"),
    [(True, [], True), (True, ["--no-reload"], False), (False, [], False)],
)
def test_it_reloads_where_debug_is_on(supervised, debug, options, reloads):
    supervisor = supervised("--dry-run", *options, settings={"debug": debug})
    supervisor.wait()
    assert ("reload      when code changes" in supervisor.log) is reloads


# ── Which files ────────────────────────────────────────────────────────────────


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the project, loaded."""
    folder = tmp_path / "edited_shop"
    folder.mkdir()
    for name in ("__init__.py", "lazy.py", "tests.py"):
        (folder / name).touch()
    (folder / "reports").mkdir()
    (folder / "reports" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    import_module("edited_shop")
    yield folder
    del sys.modules["edited_shop"]


def age(path):
    """Give the file another date, as an edit would."""
    os.utime(path, (1, 1))


@pytest.mark.parametrize(
    "name", ["__init__.py", "lazy.py", "reports/__init__.py", "tasks.py"]
)
def test_modules_are_watched_and_what_lies_beside_them(package, name):
    """Workers may load what the supervisor has not, and tasks may be new."""
    files = Files()
    assert files.changed() is None
    (package / name).touch()
    age(package / name)
    assert files.changed() == package / name
    assert files.changed() is None


@pytest.mark.parametrize("name", ["tests.py", ".lazy.py.swp", "lazy.py~", "notes.txt"])
def test_others_are_not(package, name):
    files = Files()
    (package / name).touch()
    age(package / name)
    assert files.changed() is None


def test_apps_may_ask_for_more(package):
    def watch(sender, **kwargs):
        sender.extra_files.add(package / "rates.csv")
        sender.watch_dir(package, "*.html")

    autoreload_started.connect(watch)
    try:
        files = Files()
    finally:
        autoreload_started.disconnect(watch)
    for name in ("rates.csv", "mail.html"):
        (package / name).touch()
        assert files.changed() == package / name


def test_a_file_that_is_removed_and_written_again_has_changed(package):
    files = Files()
    (package / "lazy.py").unlink()
    assert files.changed() is None
    (package / "lazy.py").touch()
    age(package / "lazy.py")
    assert files.changed() == package / "lazy.py"


def test_a_module_that_is_loaded_late_has_not_changed(package, monkeypatch):
    outside = package / "later"
    outside.mkdir()
    (outside / "late.py").touch()
    files = Files()
    monkeypatch.syspath_prepend(str(outside))
    import_module("late")
    try:
        assert files.changed() is None
        age(outside / "late.py")
        assert files.changed() == outside / "late.py"
    finally:
        del sys.modules["late"]
