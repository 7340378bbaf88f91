"""Requests nobody would think of: nothing breaks, and what is said is what is sent.

Thousands of them, made from the OpenAPI document. Each is answered as the document has
it, and none by a status that tells of a fault here.
"""

import os
from itertools import count

import pytest

schemathesis = pytest.importorskip("schemathesis", reason="one environment has it")

from django.core.handlers.wsgi import WSGIHandler  # noqa: E402
from django.core.signals import request_finished, request_started  # noqa: E402
from django.db import close_old_connections  # noqa: E402
from hypothesis import HealthCheck, assume, settings  # noqa: E402
from schemathesis import GenerationMode, checks  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from robust_queue import external_task, registry  # noqa: E402
from robust_queue.api.app import api  # noqa: E402
from robust_queue.lifecycle import operations, timetable  # noqa: E402
from robust_queue.lifecycle.search import JobSearch  # noqa: E402
from robust_queue.lifecycle.tokens import create_token  # noqa: E402
from tests.support import rows  # noqa: E402
from tests.testapp import tasks  # noqa: E402

from .conftest import ROOT, Outsider  # noqa: E402

pytestmark = pytest.mark.django_db

# Of each operation, beside those that probe the edges of its schema.
EXAMPLES = int(os.environ.get("RQ_FUZZ_EXAMPLES", "25"))

CHECKS = [
    checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    negative_data_rejection,
]

schema = schemathesis.openapi.from_dict(api.get_openapi_schema(path_prefix=f"{ROOT}/"))
schema.app = WSGIHandler()

NOTE = tasks.note.module_path


class World:
    """What there is to be asked about, so that not every answer is that it is not."""

    def __init__(self):
        scopes = ["read_arguments", "operate", "enqueue", "work"]
        _, self.token = create_token("default", name="fuzz", scopes=scopes)
        for kind in ("Supervisor", "Worker", "Dispatcher"):
            rows.process(kind)
        self.process = rows.process().pk
        self.operation = operations.request("default", "retry", JobSearch()).pk
        timetable.schedule("default", "key", tasks.note, schedule="@daily")
        self._outsider = None

    def job(self, number):
        """One in any state; what was deleted is made anew."""
        makers = [rows.ready, rows.scheduled, rows.blocked]
        makers += [rows.claimed, rows.failed, rows.finished]
        return makers[number % len(makers)](of=rows.job(task_path=NOTE)).job.pk

    @property
    def held(self):
        """A job that the worker has been told of."""
        external_task_of_mine.enqueue()
        return self.outsider.take(queues=["fuzz"])

    @property
    def outsider(self):
        """A worker that is still there."""
        if self._outsider is None or not self._outsider.ping()["alive"]:
            external_task_of_mine.enqueue()
            self._outsider = Outsider()
        return self._outsider


@pytest.fixture
def world(settings):
    settings.ROBUST_QUEUE = {"api_requests_per_minute": None, "api_longest_wait": 0.01}
    return World()


external_task_of_mine = external_task("fuzzed", queue_name="fuzz")
registry._declared.pop("fuzzed")


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    known = {**registry.discover(), "fuzzed": external_task_of_mine}
    monkeypatch.setattr(registry, "_declared", known)


@pytest.fixture(autouse=True)
def connected():
    yield
    request_started.connect(close_old_connections)
    request_finished.connect(close_old_connections)


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[*HealthCheck],
    derandomize=True,
)
def test_whatever_is_asked(case, world):
    headers = {"Authorization": f"Bearer {_bearer(case, world)}"}
    # The test holds the transaction open. Django's test client would connect it again.
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    response = case.call(headers=headers)
    if response.status_code < 300:
        _succeeded.add(_name_of(case))
    case.validate_response(response, checks=CHECKS)


_succeeded = set()


def _name_of(case):
    return case.operation.definition.raw["operationId"]


def _bearer(case, world):
    """Fill in what is there, in half of the requests; return by what they come."""
    number = next(_numbers)
    assume("" not in (case.query or {}))  # which is no parameter at all
    is_spoiled = _is_spoiled(case)
    given = {} if is_spoiled else case.path_parameters or {}
    if number % 2 and not is_spoiled and "using" in (case.query or {}):
        case.query["using"] = "default"
    there = {
        "job_id": lambda: world.job(number // 2),
        "name": lambda: tasks.note.queue_name,
        "process_id": lambda: world.process,
        "operation_id": lambda: world.operation,
        "key": lambda: "key",
    }
    for name in given.keys() & there.keys():
        if number % 2:
            given[name] = str(there[name]())
    if number % 2 and case.meta.generation.mode is GenerationMode.POSITIVE:
        _fill_in(case, world)
    if "worker_id" in given:
        given["worker_id"] = world.outsider.id
        return world.outsider.facts["secret"]
    return world.token


def _fill_in(case, world):
    """What names anything in the body names something that is there."""
    body = case.body if isinstance(case.body, dict) else {}
    for call in (body, *(body.get("jobs") or ())):
        if isinstance(call, dict) and "task" in call:
            # It takes any arguments.
            call["task"] = NOTE
    if "schedule" in body:
        body["schedule"] = "@daily"
    if "queues" in body:
        body["queues"] = ["fuzz"]
    if "token" in body:
        held = world.held
        case.path_parameters["job_id"], body["token"] = held["id"], held["token"]
    for each in body.get("outcomes", ()):
        held = world.held
        each |= {"job": held["id"], "token": held["token"]}


def _is_spoiled(case):
    """Was it made so that it does not fit, elsewhere than in its body?"""
    if case.meta.generation.mode is GenerationMode.POSITIVE:
        return False
    parts = case.meta.components.items()
    where = {part.name for part, told in parts if told.mode is GenerationMode.NEGATIVE}
    return where != {"BODY"}


_numbers = count()


def test_they_were_thousands_and_not_in_vain():
    asked, every = next(_numbers), [it.ok() for it in schema.get_all_operations()]
    if asked < len(every):
        pytest.skip("only some of the operations were asked")
    assert asked > 2_000
    names = {each.definition.raw["operationId"] for each in every}
    assert names == _succeeded
