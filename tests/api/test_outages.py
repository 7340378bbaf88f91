"""A database that is lost, or busy: said as such, at every address."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User
from django.db import (
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
)
from django.test import RequestFactory, override_settings
from django.utils import timezone
from django.views.debug import ExceptionReporter

from robust_queue.api import secrets
from robust_queue.exceptions import EnqueueError
from robust_queue.lifecycle import enqueue, timetable
from tests.testapp import tasks

from .conftest import ROOT, Caller, Outsider

pytestmark = pytest.mark.django_db

PASSING = [OperationalError, InterfaceError]


def fail(error):
    def refuse(*args, **kwargs):
        raise error("of the database")

    return refuse


def is_unavailable(answer):
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert answer["Content-Type"] == "application/problem+json"
    return answer.json()["code"] == "unavailable"


class TestReports:
    """Django mails and shows the variables of every frame, and the headers."""

    @pytest.fixture
    def report_of(self, caplog):
        def report(caller, path):
            caller.client.raise_request_exception = False
            assert caller.post(path).status_code == 500
            (error,) = [it.exc_info for it in caplog.records if it.exc_info]
            headers = {"Authorization": f"Bearer {caller.bearer}"}
            request = RequestFactory().post(path, headers=headers)
            with override_settings(DEBUG=False):
                reporter = ExceptionReporter(request, *error)
                return reporter.get_traceback_html() + reporter.get_traceback_text()

        return report

    @pytest.mark.parametrize("alias", ["default", "nothing"])
    def test_do_not_have_the_token(self, token, report_of, alias):
        caller = token("operate")
        with connection.execute_wrapper(fail(DataError)):
            page = report_of(caller, f"/jobs/retry?using={alias}")
        assert "_used_token" in page
        assert "HTTP_AUTHORIZATION" in page
        # What stands before it is its id.
        assert caller.bearer[36:] not in page

    @pytest.mark.parametrize("at", ["is_secret_of", "external_worker"])
    def test_do_not_have_the_secret_of_a_worker(
        self, render, report_of, monkeypatch, at
    ):
        worker = Outsider()
        if at == "is_secret_of":
            monkeypatch.setattr(secrets, "salted_hmac", fail(DataError))
        with connection.execute_wrapper(fail(DataError)):
            page = report_of(worker.caller, f"/workers/{worker.id}/ping")
        assert at in page
        assert worker.facts["secret"] not in page


class TestEnqueue:
    @pytest.fixture
    def enqueue_with(self, token, monkeypatch):
        caller = token("enqueue")
        caller.client.raise_request_exception = False

        def call(error):
            store = SimpleNamespace(insert=fail(error))
            monkeypatch.setattr(enqueue, "store_for", lambda database: store)
            return caller.post("/jobs", {"task": tasks.note.module_path})

        return call

    @pytest.mark.parametrize("error", PASSING)
    def test_may_be_tried_again_if_the_database_was_lost(self, enqueue_with, error):
        assert is_unavailable(enqueue_with(error))

    def test_may_be_tried_again_if_a_unique_key_could_not_be_had(self, enqueue_with):
        assert is_unavailable(enqueue_with(EnqueueError))

    @pytest.mark.parametrize("error", [DataError, IntegrityError])
    def test_is_a_fault_of_ours_otherwise(self, enqueue_with, error):
        answer = enqueue_with(error)
        assert (answer.status_code, answer.json()["code"]) == (500, "internal")


@pytest.mark.parametrize("error", PASSING)
@pytest.mark.parametrize("late", [0, 3600])
def test_a_run_by_hand_may_be_tried_again(token, monkeypatch, error, late):
    """Also where nobody has run it for long."""
    row = timetable.schedule("default", "k", tasks.note, schedule="@daily")
    row.next_run_at = timezone.now() - timedelta(seconds=late)
    row.save()
    store = SimpleNamespace(insert=fail(error))
    monkeypatch.setattr(enqueue, "store_for", lambda database: store)
    assert is_unavailable(token("operate").post("/recurring/k/run"))


@pytest.mark.parametrize("error", PASSING)
@pytest.mark.parametrize("path", ["/jobs", "/health", "/openapi.json"])
def test_who_shows_a_token_is_told(token, path, error):
    caller = token("read")
    with connection.execute_wrapper(fail(error)):
        assert is_unavailable(caller.get(path))


@pytest.mark.parametrize("error", PASSING)
@pytest.mark.parametrize("path", ["openapi.json", "docs"])
def test_who_shows_a_session_is_told(client, path, error):
    client.force_login(User.objects.create_user("ada", is_staff=True))
    with connection.execute_wrapper(fail(error)):
        assert is_unavailable(client.get(f"{ROOT}/{path}"))


def test_what_needs_no_database_is_told_without_one():
    with connection.execute_wrapper(fail(OperationalError)):
        assert Caller().get("/docs/begin.js").status_code == 200
        assert Caller().get("/nothing").status_code == 404


@pytest.mark.skipif(connection.vendor != "postgresql", reason="has no such sessions")
@pytest.mark.django_db(transaction=True)
def test_a_server_that_takes_no_changes_any_more_is_left(token):
    """As behind a failover. Whether it is there, such a server answers with a yes."""
    caller = token("enqueue")
    caller.client.raise_request_exception = False
    new = {"task": tasks.note.module_path}
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    assert is_unavailable(caller.post("/jobs", new))
    assert connection.connection is None
    assert caller.post("/jobs", new).status_code == 201
