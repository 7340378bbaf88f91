"""The queue inside web servers, and inside any program that starts it."""

import gc
import shutil
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from signal import SIGINT, SIGTERM

import pytest

from robust_queue.configuration import WorkerConfiguration
from robust_queue.embedding import Embedded
from robust_queue.exceptions import NoQueueError, RobustQueueError
from robust_queue.models import Process
from tests.support.invariants import state_of
from tests.support.supervisors import Supervised, marks, until
from tests.support.web_servers import WebServer
from tests.testapp.coroutine_tasks import MODULES, query_later
from tests.testapp.models import Mark
from tests.testapp.process_tasks import mark, rest

HARDLY_ANY = timedelta(seconds=0.05)
WORKERS = {"uvicorn": 1, "gunicorn": 2}


@pytest.fixture
def web_server(transactional_db, tmp_path):
    """Starts web servers; whatever is left of them ends with the test."""
    started = []

    def start(kind, **options):
        server = WebServer(tmp_path, kind, **options)
        started.append(server)
        server.start()
        server.until(server.answers, "it serves pages")
        server.until(lambda: len(workers()) == WORKERS[kind], "its workers are up")
        return server

    yield start
    for each in started:
        each.clean_up()
        shutil.rmtree(each.door.parent, ignore_errors=True)


def workers():
    return list(Process.objects.filter(kind="Worker"))


def finished(*results):
    return all(state_of(each) == "finished" for each in results)


@pytest.mark.parametrize("kind", WORKERS)
def test_a_web_server_runs_tasks_beside_its_pages(web_server, kind):
    server = web_server(kind)
    results = [mark.enqueue(f"{n}") for n in range(20)]
    server.until(lambda: finished(*results), "all have run")
    assert server.answers()
    processes = {row.pid for row in workers()}
    assert {each.pid for each in Mark.objects.all()} <= processes
    assert len(processes) == WORKERS[kind]
    server.stop()
    assert not Process.objects.exists()


@pytest.mark.parametrize(
    ("kind", "number"),
    [("uvicorn", SIGTERM), ("uvicorn", SIGINT), ("gunicorn", SIGTERM)],
)
def test_its_stop_lets_running_tasks_finish(web_server, kind, number):
    server = web_server(kind)
    running = rest.enqueue("running", 1.5)
    server.until(lambda: marks() == ["running begins"], "it runs")
    server.stop(number)
    assert finished(running)
    assert not Process.objects.exists()


@pytest.mark.parametrize("kind", WORKERS)
def test_what_takes_too_long_goes_back(web_server, kind):
    server = web_server(kind, shutdown_timeout=0.5)
    running = rest.enqueue("running", 60)
    server.until(lambda: marks() == ["running begins"], "it runs")
    server.stop()
    assert state_of(running) == "ready"
    assert not Process.objects.exists()


# ── In a program that ends ─────────────────────────────────────────────────────

PROGRAM = """
import django
django.setup()
from robust_queue.embedding import Embedded
from tests.support.supervisors import until
from tests.testapp.coroutine_tasks import MODULES, query_later
from tests.testapp.models import Mark

Embedded().start()
until(lambda: Mark.objects.count() == {count}, "all have begun")
"""


@pytest.mark.usefixtures("transactional_db")
def test_a_program_that_ends_lets_its_coroutines_finish(tmp_path):
    results = [query_later.enqueue(f"{n}", 1.0) for n in range(4)]
    supervised = Supervised(tmp_path, task_modules=MODULES)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(count=4)],
        env=supervised._environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert finished(*results), done.stderr
    assert not Process.objects.exists()
    assert "Exception ignored" not in done.stderr


# ── In any program ─────────────────────────────────────────────────────────────


@pytest.fixture
def quick(settings):
    settings.ROBUST_QUEUE = {
        "task_modules": ["tests.testapp.process_tasks"],
        "workers": [{"threads": 2, "polling_interval": 0.05}],
        "dispatchers": [{"polling_interval": 0.05}],
        "shutdown_timeout": 5,
    }


@pytest.mark.usefixtures("transactional_db", "quick")
class TestEmbedded:
    def test_it_works_for_a_block_and_leaves_nothing_behind(self):
        before = set(threading.enumerate())
        result = mark.enqueue("it")
        with Embedded() as embedded:
            until(lambda: finished(result), "it has run")
            assert embedded.is_running
        assert not embedded.is_running
        assert not Process.objects.exists()
        until(lambda: set(threading.enumerate()) <= before, "no thread is left")

    def test_it_can_be_started_again(self):
        embedded = Embedded()
        for label in ("first", "second"):
            embedded.start()
            result = mark.enqueue(label)
            until(lambda: finished(result), "it has run")  # noqa: B023
            embedded.stop()
        assert marks() == ["first", "second"]

    def test_a_task_that_outlives_the_stop_goes_on_and_is_recorded(self, settings):
        settings.ROBUST_QUEUE = {**settings.ROBUST_QUEUE, "shutdown_timeout": 0.2}
        before = set(threading.enumerate())
        embedded = Embedded()
        embedded.start()
        running, waiting = rest.enqueue("running", 5), mark.enqueue("at once")
        until(lambda: finished(waiting) and marks("running"), "both have begun")
        assert not embedded.stop()
        assert embedded.is_running
        assert state_of(running) == "claimed", "nobody else may begin it meanwhile"
        after = mark.enqueue("after")
        until(lambda: finished(running), "it has finished")
        assert marks("running") == ["running begins", "running ends"]
        until(lambda: not embedded.is_running, "and nothing is left to do")
        assert state_of(after) == "ready", "nothing new was begun"
        assert not Process.objects.exists()
        until(lambda: set(threading.enumerate()) <= before, "no thread is left")

    def test_its_workers_may_be_given(self):
        mine = mark.using(queue_name="mine").enqueue("mine")
        others = mark.enqueue("not mine")
        worker = WorkerConfiguration(queues=["mine"], polling_interval=HARDLY_ANY)
        with Embedded(workers=[worker]):
            until(lambda: finished(mine), "it has run")
        assert state_of(others) == "ready"

    def test_it_leaves_no_descriptors_behind(self):
        counts, before = [], set(threading.enumerate())
        for _ in range(4):
            with Embedded():
                until(workers, "it is up")
            until(lambda: set(threading.enumerate()) <= before, "no thread is left")
            gc.collect()
            counts.append(len(list(Path("/proc/self/fd").iterdir())))
        # SQLite keeps some of its own, which it uses again.
        assert counts[-1] <= counts[0] + 3

    def test_twice_at_once_is_refused(self):
        with Embedded() as embedded, pytest.raises(RobustQueueError, match="already"):
            embedded.start()

    def test_a_stop_without_a_start_does_nothing(self):
        Embedded().stop()

    def test_a_database_without_a_queue_is_refused(self):
        with pytest.raises(NoQueueError, match="nowhere"):
            Embedded(database="nowhere").start()
