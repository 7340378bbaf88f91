"""The OpenAPI document, and the pages on which it can be tried."""

import pytest
from django.contrib.auth.models import User
from pydantic import BaseModel

from robust_queue.api.app import api
from robust_queue.lifecycle.deeds import VERBS
from robust_queue.lifecycle.selection import KINDS, TABLES
from robust_queue.models.recurring import Outcome
from robust_queue.recurrence.refusals import MOST_MISSED
from tests.support import rows
from tests.testapp import tasks

from .conftest import ROOT, Caller

pytestmark = pytest.mark.django_db

HOME = "robust_queue.api."


@pytest.fixture
def document():
    return api.get_openapi_schema(path_prefix="/v1/")


def each_of(document):
    for methods in document["paths"].values():
        yield from methods.values()


def models(of=BaseModel):
    for each in of.__subclasses__():
        yield each
        yield from models(each)


@pytest.fixture
def staff(client):
    client.force_login(User.objects.create_user("ada", is_staff=True))
    return client


class TestDocument:
    def test_is_for_who_is_known(self, token, staff):
        assert Caller().get("/openapi.json").status_code == 401
        assert token("work:pdf").get("/openapi.json").status_code == 200
        assert staff.get(f"{ROOT}/openapi.json").status_code == 200
        wrong = {"Authorization": "Bearer x"}
        answer = staff.get(f"{ROOT}/openapi.json", headers=wrong)
        assert answer.status_code == 401, "it is not judged by the session"

    def test_names_addresses_as_the_project_has_them(self, token):
        paths = token("read").get("/openapi.json").json()["paths"]
        assert f"{ROOT}/workers" in paths

    def test_tells_what_each_operation_takes(self, token):
        document = token("read").get("/openapi.json").json()
        register = document["paths"][f"{ROOT}/workers"]["post"]
        assert register["operationId"] == "register"
        assert register["x-scope"] == "work"
        assert {"405", "429", "500", "503"} <= {*register["responses"]}

    def test_tells_who_is_let_in(self, document):
        needs = {told["operationId"]: told["security"] for told in each_of(document)}
        assert needs["register"] == [{"token": []}]
        assert needs["ping"] == [{"worker": []}]
        assert needs["list_jobs"] == [{"token": []}, {"session": []}]

    def test_has_both_kinds_of_answers_that_tell_of_an_outage(self, document):
        (health,) = [it for it in each_of(document) if it["operationId"] == "health"]
        assert {*health["responses"][503]["content"]} == {
            "application/json",
            "application/problem+json",
        }

    def test_gives_no_name_to_two_schemas(self, document):
        schemas = document["components"]["schemas"]
        assert "seconds" in schemas["RunFacts"]["properties"]
        assert "outcome" in schemas["InstantFacts"]["properties"]
        names = [it.__name__ for it in models() if it.__module__.startswith(HOME)]
        assert len(names) == len(set(names))

    @pytest.mark.parametrize(
        ("schema", "field", "words"),
        [
            ("Job", "state", {*TABLES, "lost", "gone"}),
            ("Left", "state", {*TABLES, "lost", "gone"}),
            ("OutcomeAnswer", "state", {*TABLES, "lost", "gone", "unknown"}),
            ("Failing", "kind", {*KINDS}),
            ("OperationFacts", "verb", {*VERBS}),
            ("InstantFacts", "outcome", {*Outcome.values}),
        ],
    )
    def test_names_all_words_that_there_are(self, document, schema, field, words):
        told = document["components"]["schemas"][schema]["properties"][field]
        assert {*told["enum"]} == words

    def test_a_job_without_a_state_is_lost(self, token):
        job = rows.job()
        told = token("read").get(f"/jobs/{job.pk}").json()
        assert told["state"] == "lost"

    @pytest.mark.parametrize(
        ("field", "most"), [("missed_limit", MOST_MISSED), ("jitter", 86_400)]
    )
    def test_tells_the_limits_that_there_are(self, document, token, field, most):
        told = document["components"]["schemas"]["NewTimetable"]["properties"][field]
        assert (told["type"], told["maximum"]) == ("integer", most)
        caller = token("operate", "enqueue")
        body = {"task": tasks.note.module_path, "schedule": "@daily", "key": "k"}
        for value in (most + 1, 1.5):
            answer = caller.post("/recurring", {**body, field: value})
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert caller.post("/recurring", {**body, field: most}).status_code == 201


def test_cookies_and_headers_are_named_as_in_the_project(settings, staff):
    settings.SESSION_COOKIE_NAME = "shop"
    settings.CSRF_HEADER_NAME = "HTTP_X_SHOP_PROOF"
    told = api.get_openapi_schema(path_prefix="/v1/")["components"]["securitySchemes"]
    assert told["session"]["name"] == "shop"
    assert "the header X-SHOP-PROOF" in told["session"]["description"]
    staff.force_login(User.objects.get())
    page = staff.get(f"{ROOT}/docs").content.decode()
    assert 'data-csrf-header="X-SHOP-PROOF"' in page


class TestPages:
    def test_are_for_staff(self, client, staff):
        assert staff.get(f"{ROOT}/docs").status_code == 200
        staff.logout()
        answer = staff.get(f"{ROOT}/docs")
        assert answer["Location"].startswith("/admin/login/?next=")

    def test_fetch_nothing_from_elsewhere(self, staff):
        text = staff.get(f"{ROOT}/docs").content.decode()
        assert "//" not in text.replace("<!doctype html>", "")
        for name in ("swagger-ui.css", "swagger-ui-bundle.js", "begin.js"):
            assert f"docs/{name}" in text
            assert staff.get(f"{ROOT}/docs/{name}").status_code == 200
        assert staff.get(f"{ROOT}/docs/settings.py").status_code == 404
