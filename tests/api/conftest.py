"""Who calls the API in tests, and the tasks that are performed outside."""

import json
from datetime import timedelta

import pytest
from django.test import Client

from robust_queue import external_task, registry
from robust_queue.api import room, tally, waiting
from robust_queue.api.own import Own
from robust_queue.api.sharing import Shared
from robust_queue.lifecycle.tokens import create_token

ROOT = "/queue/v1"


class Caller:
    """Sends JSON with a bearer token, and reads JSON."""

    def __init__(self, bearer=None, **how):
        self.bearer = bearer
        self.client = Client(**how)

    def request(self, method, path, body=None, **headers):
        if self.bearer is not None:
            headers.setdefault("Authorization", f"Bearer {self.bearer}")
        content = {} if body is None else {"data": json.dumps(body)}
        return self.client.generic(
            method,
            f"{ROOT}{path}",
            content_type="application/json" if content else "",
            headers=headers,
            **content,
        )

    def get(self, path, **headers):
        return self.request("GET", path, **headers)

    def post(self, path, body=None, **headers):
        return self.request("POST", path, body, **headers)

    def put(self, path, body=None, **headers):
        return self.request("PUT", path, body, **headers)

    def delete(self, path, body=None, **headers):
        return self.request("DELETE", path, body, **headers)


class Outsider:
    """A worker outside, call by call."""

    def __init__(self, **told):
        self.token, text = create_token("default", name="outsider", scopes=["work:*"])
        answer = Caller(text).post("/workers", told or None)
        assert answer.status_code == 201, answer.content
        self.facts = answer.json()
        self.id = self.facts["id"]
        self.caller = Caller(self.facts["secret"])

    def call(self, path, body=None):
        answer = self.caller.post(f"/workers/{self.id}{path}", body)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def ping(self, **told):
        return self.call("/ping", told or None)

    def dequeue(self, **told):
        return self.call("/dequeue", told or None)

    def take(self, **told):
        (job,) = self.dequeue(**told)["jobs"]
        return job

    def report(self, job, outcome, **told):
        body = {"job": job["id"], "token": job["token"], "outcome": outcome, **told}
        answer = self.call("/outcomes", {"outcomes": [body]})
        return answer["outcomes"][0]

    def leave(self):
        return self.caller.delete(f"/workers/{self.id}").json()


@pytest.fixture(autouse=True)
def unwritten(monkeypatch):
    """What is counted would be written behind the test, and stay there."""
    monkeypatch.setattr(tally, "later", lambda seconds, action: None)
    monkeypatch.setattr(tally, "_books", Own(tally._Book))


@pytest.fixture(autouse=True)
def rooms(monkeypatch):
    """Rooms of this test, in which nothing is heard unless it wants that."""
    made = []

    def make(database):
        made.append(room.Room(database))
        return made[-1]

    monkeypatch.setattr(room, "can_listen", lambda database: False)
    monkeypatch.setattr(room, "later", lambda seconds, action: None)
    own = Own(make)
    monkeypatch.setattr(waiting, "rooms", own)
    monkeypatch.setattr(waiting, "shared", Own(Shared))
    yield own
    for each in made:
        each.close()


@pytest.fixture
def token(db):
    """Makes a caller with a token of these scopes."""

    def make(*scopes, **how):
        _, text = create_token("default", name="-".join(scopes), scopes=scopes, **how)
        return Caller(text)

    return make


@pytest.fixture
def render(db, monkeypatch):
    """A task that is performed outside."""
    how = {"max_attempts": 2, "timeout": 60}
    return _declared(monkeypatch, "render-pdf", queue_name="pdf", **how)


@pytest.fixture
def late(db, monkeypatch):
    """One whose jobs are of no use after a second."""
    how = {"deadline": timedelta(seconds=1)}
    return _declared(monkeypatch, "too-late", queue_name="pdf", **how)


def _declared(monkeypatch, name, **how):
    """The only one of its kind, until the test is over."""
    known = registry.discover().items()
    others = {path: task for path, task in known if not registry.is_external(task)}
    monkeypatch.setattr(registry, "_declared", others)
    return external_task(name, **how)
