"""Workers outside, and the web server over which they work."""

import http.client
import json
import os
import signal
import socket
import sys
import threading
from contextlib import closing, suppress
from datetime import timedelta

import httpx
import pytest
from django.utils import timezone

from robust_queue import registry
from robust_queue.client import Client
from robust_queue.lifecycle.tokens import create_token
from robust_queue.models import ClaimedExecution, Process
from robust_queue.processes.undertaker import prune
from tests.support.supervisors import PATIENCE, ROOT, Supervised, until

OPTIONS = {"task_modules": ["tests.testapp.outside_tasks"]}
PROGRAMS = {
    "python": [sys.executable, "-m", "tests.testapp.outside_worker"],
    "node": ["node", str(ROOT / "tests/testapp/outside_worker.mjs")],
    "shop": ["node", str(ROOT / "example_project/node_worker/shop.mjs")],
}


class ApiServer(Supervised):
    """A web server with the API, at a port of its own."""

    application = "tests.testapp.served:wsgi"

    def __init__(self, folder, **options):
        served = {"urls": "tests.urls"}
        super().__init__(folder, settings=served, **{**OPTIONS, **options})
        self.port = _free_port()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/queue/"

    @property
    def command(self):
        return [
            *(sys.executable, "-m", "gunicorn"),
            *("--bind", f"127.0.0.1:{self.port}", "--threads", "24"),
            *("--graceful-timeout", "1", self.application),
        ]

    def start(self):
        super().start()
        self.until(self._answers, "it answers")
        return self

    def _answers(self):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with closing(line), suppress(OSError):
            line.request("GET", "/queue/v1/openapi.json")
            return line.getresponse().status == 401
        return False


class Outside(Supervised):
    """A program that works for the queue, and knows an address and a token."""

    def __init__(self, folder, kind, url, token, *, queues, environment=()):
        super().__init__(folder)
        self._environment = {
            **_without_django(os.environ),
            "PYTHONPATH": str(ROOT),
            "QUEUE_URL": url,
            "QUEUE_TOKEN": token,
            "QUEUE_NAMES": queues,
            **dict(environment),
        }
        self.kind = kind

    @property
    def command(self):
        return PROGRAMS[self.kind]

    def kill(self):
        """It gets no chance to say anything."""
        self.send(signal.SIGKILL)
        self.wait()


class Lossy(httpx.HTTPTransport):
    """Loses answers, or changes them: the server has done what it was asked for."""

    def __init__(self):
        super().__init__()
        # The ends of paths, each for one answer to be lost.
        self.loses = []
        # Method and end of the path of everything that was sent.
        self.sent = []
        self._bodies = []
        # What the clock of the queue showed, in the order in which it was told.
        self.heard = []
        # What becomes of the facts in answers to a dequeue, and of when it is said.
        self.changes = []
        self.date = None
        # Of more jobs no answer tells that gets through.
        self.largest = 100
        self._lock = threading.Lock()

    def handle_request(self, request):
        response = super().handle_request(request)
        end = request.url.path.rpartition("/")[2]
        with self._lock:
            self.sent.append(f"{request.method} {end}")
            self._bodies.append((end, request.content or b"null"))
            is_lost = end in self.loses
            if is_lost:
                self.loses.remove(end)
        if is_lost:
            response.read()
            response.close()
            raise httpx.ReadError("lost on the way")
        return self._changed(response) if end in ("dequeue", "ping") else response

    def bodies(self, end):
        """What was sent to paths with that end."""
        return [json.loads(body) for sent, body in self._bodies if sent == end]

    def _changed(self, response):
        facts = json.loads(response.read())
        self.heard.append(facts.get("now"))
        if len(facts.get("jobs", ())) > self.largest:
            raise httpx.ReadTimeout("too much to be read in time")
        for change in self.changes if "jobs" in facts else []:
            change(facts)
        headers = {"Date": self.date} if self.date else {}
        return httpx.Response(response.status_code, json=facts, headers=headers)


class InThread:
    """A worker that runs in a thread of the test."""

    def __init__(self, worker):
        self.worker = worker
        self.error = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self):
        self.worker.stop()
        return self.wait()

    def wait(self):
        """Its error, if it has ended with one."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "It did not end."
        return self.error

    def _run(self):
        try:
            self.worker.run()
        except Exception as error:
            self.error = error


def age_claims():
    """What was given out was given out an hour ago."""
    then = timezone.now() - timedelta(hours=1)
    return ClaimedExecution.objects.update(created_at=then)


def make_late(facts):
    """Changes an answer to a dequeue: the time of all its jobs is up."""
    for each in facts["jobs"]:
        each["seconds_left"] = 0.0


def make_cancelled(facts):
    """Changes an answer to a dequeue: all its jobs are to end."""
    facts["cancelled"] += [each["id"] for each in facts["jobs"]]


def new_token(*scopes):
    """The text of a new token, for those who ask as often as they can."""
    _, text = create_token(
        "default",
        name="outside",
        scopes=scopes or ["work:*"],
        requests_per_minute=1_000_000,
    )
    return text


@pytest.fixture(scope="module")
def api_server(django_db_setup, tmp_path_factory):
    """One server for the tests of a module."""
    server = ApiServer(tmp_path_factory.mktemp("api"))
    yield server.start()
    server.clean_up()


@pytest.fixture
def outside_tasks(monkeypatch):
    """The module with the tasks, which the test alone knows."""
    monkeypatch.setattr(registry, "_declared", registry.discover())
    from tests.testapp import outside_tasks

    for each in outside_tasks.EXTERNAL:
        registry.redeclare(each)
    return outside_tasks


@pytest.fixture
def line():
    """A line on which answers may be lost."""
    return Lossy()


@pytest.fixture
def client(transactional_db, api_server, outside_tasks, line):
    """A client with a token for everything that workers do."""
    with Client(api_server.url, new_token(), transport=line) as client:
        yield client


def _free_port():
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _without_django(environment):
    """To show that no settings are needed."""
    return {
        name: value
        for name, value in environment.items()
        if name != "DJANGO_SETTINGS_MODULE"
    }


def strike_off():
    """All workers are taken for dead, although they go on to call."""
    until(_taken_for_dead, "they are struck off")


def _taken_for_dead():
    # A call in between would show that they live.
    Process.objects.update(last_heartbeat_at=timezone.now() - timedelta(hours=1))
    return prune("default", threshold=timedelta(minutes=5), spare=[])
