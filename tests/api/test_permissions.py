"""Who may do what: every operation, every scope, every permission, and nobody."""

import logging
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine
from django.contrib.auth.models import Permission, User
from django.test import Client

from robust_queue.admin.token_form import COVER
from robust_queue.api import deeds
from robust_queue.api.access import IsWorker, Needs
from robust_queue.api.app import api
from robust_queue.arguments import dump_call
from robust_queue.lifecycle.deeds import VERBS
from robust_queue.lifecycle.search import JobSearch
from robust_queue.lifecycle.tokens import create_token
from robust_queue.models import Job, Operation
from robust_queue.scopes import Scopes
from tests.support import rows
from tests.testapp import tasks

from .conftest import ROOT, Caller, Outsider

pytestmark = pytest.mark.django_db

NOTE = tasks.note.module_path
SCOPES = ["read", "read_arguments", "operate", "enqueue:*", "work:*"]
# Which scopes open what takes a scope.
OPENED_BY = {
    "read": {"read", "read_arguments"},
    "read_arguments": {"read_arguments"},
    "operate": {"operate"},
    "enqueue": {"enqueue:*"},
    "work": {"work:*"},
}
# Nothing of these may make the answer another one than whether it is allowed.
BODIES = {
    "enqueue": {"task": NOTE},
    "enqueue_jobs": {"jobs": [{"task": NOTE}]},
    "create_recurring": {"key": "k", "task": NOTE, "schedule": "@daily"},
    "replace_recurring": {"task": NOTE, "schedule": "@daily"},
    "rerun_jobs": {"filter": {"state": "failed"}},
    **{f"{verb}_jobs": {"filter": {}} for verb in VERBS},
}
SAFE = {"GET", "HEAD", "OPTIONS"}
MAY_STOP = ("retry_job",)


def operations():
    """Every operation that there is, with what lets in."""
    for router in api._get_bound_routers():
        for path, view in router.path_operations.items():
            for operation in view.operations:
                name = operation.view_func.__name__
                (method,) = operation.methods
                yield name, method, path, operation.auth_callbacks[0], router


def _address(path, router):
    filled = re.sub(r"\{uuid\w*:\w+\}", "0192f0c1-2345-7678-9abc-def012345678", path)
    filled = re.sub(r"\{\w+:\w+\}", "some", filled)
    return router.prefix.rstrip("/") + filled


ALL = {
    name: (method, _address(path, router), lets_in)
    for name, method, path, lets_in, router in operations()
}
OURS = {it: facts for it, facts in ALL.items() if isinstance(facts[2], Needs)}
OF_WORKERS = {it: facts for it, facts in ALL.items() if isinstance(facts[2], IsWorker)}


def deeds_of(name):
    """What lets in; any of these."""
    return OURS[name][2].deed, *OURS[name][2].others


def answer_of(caller, name, **headers):
    method, path, _ = ALL[name]
    body = BODIES.get(name)
    return caller.request(method, path, body, **headers).status_code


def test_each_operation_lets_in_somebody_in_particular():
    assert {*OURS, *OF_WORKERS} == {*ALL}
    assert len(ALL) > 40


@pytest.mark.parametrize("name", sorted(ALL))
def test_nobody_gets_anything(name):
    for bearer in (None, "", "x", "rq_" + "0" * 32 + "_" + "A" * 43):
        assert answer_of(Caller(bearer), name) == 401


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", sorted(OURS))
def test_a_token_opens_what_its_scopes_say(token, name, scope):
    answer = answer_of(token(scope), name)
    if any(scope in OPENED_BY[each.scope] for each in deeds_of(name)):
        # A recurring task enqueues: that takes another leave as well.
        if name in {"create_recurring", "replace_recurring"}:
            assert answer in {403, 404}
        else:
            assert answer not in {401, 403}
    else:
        assert answer == 403


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", sorted(OF_WORKERS))
def test_no_token_stands_in_for_the_secret_of_a_worker(token, name, scope):
    assert answer_of(token(scope), name) == 401
    method, path, _ = ALL[name]
    worker = Outsider(queues=["default"])
    there = path.replace("0192f0c1-2345-7678-9abc-def012345678", worker.id, 1)
    assert token(scope).request(method, there).status_code == 401
    assert worker.caller.request(method, there).status_code not in {401, 403}


# What is there beside the operations: who is told of it. The pages have nothing that
# is anybody's, and who asks for them without a session is sent to where one is had.
BESIDE = {
    "/openapi.json": {"anonymous": 401, "token": 200, "staff": 200},
    "/docs": {"anonymous": 302, "token": 302, "staff": 200},
    "/docs/begin.js": {"anonymous": 200, "token": 200, "staff": 200},
    "/docs/settings.py": {"anonymous": 404, "token": 404, "staff": 404},
}


@pytest.mark.parametrize("api_sessions", [False, True])
@pytest.mark.parametrize("path", sorted(BESIDE))
def test_who_is_told_of_what_is_beside(token, settings, path, api_sessions):
    settings.ROBUST_QUEUE = {"api_sessions": api_sessions}
    answers = BESIDE[path]
    for bearer in (None, "x", "rq_" + "0" * 32 + "_" + "A" * 43):
        assert Caller(bearer).get(path).status_code == answers["anonymous"]
    for scope in SCOPES:
        assert token(scope).get(path).status_code == answers["token"]
    for name, is_staff in (("visitor", False), ("staff", True)):
        caller = TestSessions().visitor(name=name, is_staff=is_staff)
        told = answers["staff" if is_staff else "anonymous"]
        assert caller.get(path).status_code == told


@pytest.mark.parametrize("how", ["expires_at", "revoked_at"])
def test_a_token_that_is_over_opens_nothing(how):
    row, text = create_token("default", name="old", scopes=SCOPES)
    setattr(row, how, row.created_at)
    row.save()
    assert {answer_of(Caller(text), name) for name in OURS} == {401}


class TestHandingOut:
    """Who makes a token in the admin may do all that its scopes open."""

    def opened_by(self, kind):
        """The permissions of all deeds that a scope opens."""
        scopes = Scopes.read([kind])
        every = (it for it in vars(deeds).values() if isinstance(it, deeds.Deed))
        opened = (it for it in every if scopes.allows(it.scope, "x"))
        return {name for it in opened for name in it.permissions or ()}

    @pytest.mark.parametrize("kind", sorted(COVER))
    def test_a_scope_takes_every_permission_of_what_it_opens(self, kind):
        # Nobody works by hand: that has no permissions of its own.
        own = {*COVER[kind]} if kind == "work" else set()
        assert {*COVER[kind]} == self.opened_by(kind) | own

    def test_every_verb_has_its_deed(self):
        assert {*deeds.TO_JOBS} == {*VERBS}

    def test_the_guide_tells_what_a_scope_takes(self):
        guide = Path(__file__).resolve().parents[2] / "docs/how-to/api-tokens.md"
        _, _, below = guide.read_text().partition("## Who may hand them out")
        lines = re.findall(r"^\| `(\w+)` \| (.+) \|$", below, re.MULTILINE)
        told = {kind: {*re.findall(r"`(\w+)`", text)} for kind, text in lines}
        assert told == {kind: {*names} for kind, names in COVER.items()}


class TestSessions:
    """Staff with the permissions of the admin, if the settings let sessions in."""

    @pytest.fixture
    def on(self, settings):
        settings.ROBUST_QUEUE = {"api_sessions": True}

    def visitor(self, *codenames, name="ada", enforce_csrf_checks=False, **facts):
        user = User.objects.create_user(name, **{"is_staff": True, **facts})
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        caller = Caller()
        caller.client = Client(enforce_csrf_checks=enforce_csrf_checks)
        caller.client.force_login(user)
        return caller

    def test_open_nothing_by_themselves(self):
        root = self.visitor(is_superuser=True)
        assert {answer_of(root, name) for name in ALL} == {401}

    def test_open_nothing_to_who_is_no_staff(self, on):
        root = self.visitor(is_superuser=True, is_staff=False)
        assert {answer_of(root, name) for name in ALL} == {401}

    @pytest.mark.parametrize("name", sorted(OURS))
    def test_take_all_permissions_that_a_deed_takes(self, on, name):
        asked = OURS[name][2].deed.permissions
        enough = {it for each in deeds_of(name) for it in each.permissions or ()}
        others = {it.codename for it in Permission.objects.all()} - enough
        assert answer_of(self.visitor(*others), name) in self.refusals(asked)

    @pytest.mark.parametrize("name", sorted(OURS))
    def test_are_enough_with_them(self, on, name):
        if OURS[name][2].deed.permissions is None:
            pytest.skip("nobody works by hand")
        for at, deed in enumerate(deeds_of(name)):
            # Of one that takes none, it is asked for one of some.
            asked = deed.permissions or MAY_STOP
            visitor = self.visitor(*asked, "add_job", name=f"ada-{at}")
            assert answer_of(visitor, name) not in {401, 403}

    def refusals(self, asked):
        # Those that take none take one of some, which are among all the others.
        return {404} if asked == () else {403}

    def test_change_nothing_where_the_admin_is_read_only(self, settings):
        settings.ROBUST_QUEUE = {"api_sessions": True, "admin_read_only": True}
        root = self.visitor(is_superuser=True)
        for name, (method, _, _) in OURS.items():
            assert (answer_of(root, name) == 403) is (method not in SAFE), name

    @pytest.mark.parametrize("name", sorted(OURS))
    def test_show_their_csrf_token_to_change_anything(self, on, name):
        root = self.visitor(is_superuser=True, enforce_csrf_checks=True)
        if OURS[name][0] in SAFE:
            assert answer_of(root, name) not in {401, 403}
            return
        answer = root.request(*ALL[name][:2], BODIES.get(name))
        assert answer.status_code == 403
        if OURS[name][2].deed.permissions is not None:
            assert "send it in X-CSRFToken" in answer.json()["detail"]
        page = root.client.get(f"{ROOT}/docs").content.decode()
        proof = re.search(r'data-csrf-token="(\w+)"', page)[1]
        if OURS[name][2].deed.permissions is not None:
            answer = answer_of(root, name, **{"X-CSRFToken": proof})
            assert answer not in {401, 403}

    def test_see_of_jobs_what_they_see_in_the_admin(self, on):
        call = dump_call([], {"password": "hunter2", "name": "ada"})
        rows.ready(of=rows.job(task_path=NOTE, arguments=call))
        seen = {}
        for codename in ("view_arguments", "view_unredacted_arguments"):
            User.objects.all().delete()
            visitor = self.visitor("view_job", codename)
            (seen[codename],) = visitor.get("/jobs?arguments=true").json()["jobs"]
        assert seen["view_arguments"]["contents"] == "redacted"
        assert seen["view_arguments"]["kwargs"]["name"] == "ada"
        assert "hunter2" not in str(seen["view_arguments"])
        told = seen["view_unredacted_arguments"]
        assert (told["contents"], told["kwargs"]["password"]) == ("shown", "hunter2")

    def test_are_told_nothing_of_jobs_that_they_may_not_look_at(self, on):
        job = rows.failed(of=rows.job(task_path=NOTE)).job
        visitor = self.visitor("retry_job", "view_arguments")
        told = visitor.post(f"/jobs/{job.pk}/retry").json()
        assert told == {"id": str(job.pk), "state": "ready"}
        enqueuer = self.visitor("add_job", "view_unredacted_arguments", name="bob")
        told = enqueuer.post("/jobs", {"task": NOTE, "args": ["x"]}).json()
        assert (told["contents"], told["args"]) == ("hidden", None)

    def test_do_not_search_arguments_of_jobs_that_they_may_not_look_at(self, on):
        visitor = self.visitor("retry_job", "view_unredacted_arguments")
        answer = visitor.post("/jobs/retry", {"filter": {"text": "hunter2"}})
        (operation,) = Operation.objects.all()
        assert not JobSearch.read(operation.criteria).in_arguments
        assert answer.status_code == 202

    @pytest.mark.parametrize(("keys", "found"), [(["password"], 0), ([], 1)])
    def test_search_arguments_that_they_see_as_they_are(self, settings, keys, found):
        settings.ROBUST_QUEUE = {"api_sessions": True, "redact": keys}
        call = dump_call([], {"note": "hunter2"})
        rows.ready(of=rows.job(task_path=NOTE, arguments=call))
        visitor = self.visitor("view_job", "view_arguments")
        assert len(visitor.get("/jobs?text=hunter2").json()["jobs"]) == found
        blind = self.visitor("view_job", name="bob")
        assert blind.get("/jobs?text=hunter2").json()["jobs"] == []

    def test_write_over_no_arguments_that_they_may_not_see(self, on):
        plain, secret = self.failed({"a": 1}), self.failed({"password": "x"})
        may = ("view_job", "retry_job", "discard_job")
        blind = self.visitor(*may)
        assert blind.post(f"/jobs/{plain}/rerun").status_code == 403
        seeing = self.visitor(*may, "view_arguments", name="bob")
        assert seeing.post(f"/jobs/{secret}/rerun").status_code == 403
        told = seeing.post("/jobs/rerun", {"filter": {"state": "failed"}}).json()
        found = {each["old"]: each for each in told["jobs"]}
        assert found[plain]["new"] is not None
        assert found[secret]["new"] is None
        assert "view_unredacted_arguments" in found[secret]["problem"]
        sees_all = (*may, "view_arguments", "view_unredacted_arguments")
        chief = self.visitor(*sees_all, name="eve")
        assert chief.post(f"/jobs/{secret}/rerun").status_code == 201

    def test_write_over_no_schedule_whose_arguments_they_may_not_see(self, on):
        rows.recurring_task(
            key="k", task_path=NOTE, static=False, arguments=dump_call([], {})
        )
        may = ("change_recurringtask", "view_recurringtask", "add_job")
        body = BODIES["replace_recurring"]
        assert self.visitor(*may).put("/recurring/k", body).status_code == 403
        seeing = self.visitor(*may, "view_arguments", name="bob")
        answer = seeing.put("/recurring/k", body)
        assert (answer.status_code, answer.json()["contents"]) == (200, "redacted")

    def test_run_no_schedule_that_they_may_not_look_at(self, on):
        rows.recurring_task(key="k", task_path=NOTE, arguments=dump_call([], {}))
        blind = self.visitor("run_job")
        assert blind.post("/recurring/k/run").status_code == 403
        seeing = self.visitor("run_job", "view_recurringtask", name="bob")
        assert seeing.post("/recurring/k/run").status_code == 201

    def test_move_jobs_to_other_queues_if_they_may_enqueue(self, on):
        old = self.failed()
        may = OURS["rerun_job"][2].deed.permissions
        visitor = self.visitor(*may)
        body = {"filter": {"state": "failed"}, "queue": "mine"}
        answer = visitor.post(f"/jobs/{old}/rerun", {"queue": "mine"})
        assert (answer.status_code, visitor.post("/jobs/rerun", body).status_code) == (
            403,
            403,
        )
        enqueuer = self.visitor(*may, "add_job", name="bob")
        answer = enqueuer.post(f"/jobs/{old}/rerun", {"queue": "mine"})
        assert (answer.status_code, answer.json()["queue"]) == (201, "mine")

    def test_have_jobs_named_that_processes_run_if_they_may_see_claims(self, on):
        worker = rows.process()
        rows.claimed(by=worker)
        visitor = self.visitor("view_process")
        chief = self.visitor("view_process", "view_claimedexecution", name="bob")
        for caller, named in ((visitor, 0), (chief, 1)):
            one = caller.get(f"/processes/{worker.pk}").json()
            (same,) = caller.get("/processes").json()
            for each in (one["worker"], same["worker"]):
                assert (each["busy"], len(each["runs"])) == (1, named)

    def test_have_nobody_named_by_the_doctor_whom_they_may_not_look_at(self, on):
        rows.ready(of=rows.job(queue_name="unserved"))
        rows.process("Worker", metadata='{"queues": ["default"]}')
        visitor = self.visitor("view_job")
        chief = self.visitor(
            *("view_job", "view_process", "view_recurringtask"), name="bob"
        )
        for caller, rows_told in ((visitor, []), (chief, ["unserved: 1 ready"])):
            answer = caller.get("/health")
            (told,) = [
                each
                for each in answer.json()["findings"]
                if each["text"].startswith("Queues have ready jobs, but no live")
            ]
            assert told["rows"] == rows_told

    def test_learn_of_no_operation_unless_they_may_ask_for_one(self, on, token):
        rows.failed()
        told = token("operate").post("/jobs/discard", {"filter": {}}).json()
        unknown = "0192f0c1-2345-7678-9abc-def012345678"
        visitor = self.visitor("view_process")
        for each in (told["id"], unknown):
            assert visitor.post(f"/operations/{each}/stop").status_code == 403

    def test_see_what_becomes_of_what_they_may_ask_for(self, on, token):
        rows.failed()
        chief, wanted = token("operate", "read_arguments"), {"text": "hunter2"}
        told = chief.post("/jobs/retry", {"filter": wanted}).json()
        Operation.objects.update(problem="ValueError: hunter2")
        visitor = self.visitor("discard_job")
        for caller in (visitor, token("operate")):
            seen = caller.get(f"/operations/{told['id']}").json()
            assert (seen["status"], seen["problem"]) == ("waiting", "ValueError")
            assert caller.get("/operations").json() == [seen]
            assert "hunter2" not in str(seen)

    def test_stop_nothing_that_only_a_later_version_knows(self, on, token):
        rows.failed()
        told = token("operate").post("/jobs/discard", {"filter": {}}).json()
        Operation.objects.update(verb="polish")
        path = f"/operations/{told['id']}/stop"
        assert self.visitor(is_superuser=True).post(path).status_code == 403
        answer = token("operate", "read").post(path)
        assert (answer.status_code, answer.json()["status"]) == (200, "stopped")

    def test_cannot_write_lines_of_others_into_the_log(self, on, caplog):
        caplog.set_level(logging.INFO, "robust_queue.api")
        job = self.failed()
        forger = self.visitor("retry_job", name="ada\ntoken admin: discard")
        forger.post(f"/jobs/{job}/retry")
        assert f"ada token admin: discard: retry {job}" in caplog.messages

    def failed(self, kwargs=None):
        call = dump_call([], kwargs or {})
        return str(rows.failed(of=rows.job(task_path=NOTE, arguments=call)).job.pk)

    def test_are_named_in_what_they_have_done(self, on):
        rows.failed()
        root = self.visitor(is_superuser=True)
        told = root.post("/jobs/discard", {"filter": {}}).json()
        assert told["requested_by"] == "ada"


class TestScopesOfNames:
    def test_of_a_recurring_task_take_the_leave_to_enqueue_it(self, token):
        body = BODIES["create_recurring"]
        assert token("operate").post("/recurring", body).status_code == 403
        caller = token("operate", f"enqueue:{NOTE}")
        assert caller.post("/recurring", body).status_code == 201
        other = {"task": tasks.add.module_path, "schedule": "@daily"}
        assert caller.put("/recurring/k", other).status_code == 403

    def test_of_operations_are_asked_when_it_is_known_which(self, settings, token):
        settings.ROBUST_QUEUE = {"api_sessions": True}
        rows.failed()
        told = token("operate").post("/jobs/discard", {"filter": {}}).json()
        visitor = TestSessions().visitor("view_job", "retry_job")
        path = f"/operations/{told['id']}/stop"
        assert visitor.post(path).status_code == 403
        assert Job.objects.exists()


def test_what_was_refused_has_changed_nothing(token):
    job = rows.failed().job
    caller = token("read", "work:*")
    caller.post(f"/jobs/{job.pk}/retry")
    caller.delete(f"/jobs/{job.pk}")
    caller.post("/jobs/discard", {"ids": [str(job.pk)]})
    assert Job.objects.with_state().get().state == "failed"


@pytest.mark.parametrize("at_most", ["of the token", "of the settings"])
def test_too_many_requests_are_told_when_to_come_back(token, settings, at_most):
    own = {"requests_per_minute": 3} if at_most == "of the token" else {}
    settings.ROBUST_QUEUE = {"api_requests_per_minute": 7 if own else 3}
    caller, other = token("read", **own), token("operate", "read")
    moment = datetime.now(UTC).replace(second=20, microsecond=0)
    with time_machine.travel(moment, tick=False) as clock:
        answers = [caller.get("/queues") for _ in range(5)]
        assert [it.status_code for it in answers] == [200, 200, 200, 429, 429]
        assert answers[-1].json()["code"] == "too_many_requests"
        assert answers[-1]["Retry-After"] == "40"
        assert other.get("/queues").status_code == 200, "it counts by itself"
        clock.shift(40)
        assert caller.get("/queues").status_code == 200


def test_another_address_is_a_problem_too(token):
    caller = token("read")
    answer = caller.get("/nothing")
    assert (answer.status_code, answer["Content-Type"]) == (
        404,
        "application/problem+json",
    )
    answer = caller.delete("/queues")
    assert (answer.status_code, answer["Allow"]) == (405, "GET")
    assert answer.json()["code"] == "wrong_method"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/docs/begin.js"])
def test_what_cannot_be_done_to_the_document_is_a_problem_too(method, path):
    answer = Caller(enforce_csrf_checks=True).request(method, path)
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")
    assert answer.json()["code"] == "wrong_method"


def test_ids_are_the_same_in_upper_case(token, render):
    job, worker, printer = rows.failed().job, rows.process(), Outsider()
    caller = token("read", "operate")
    for path in (f"/jobs/{job.pk}", f"/processes/{worker.pk}"):
        kind, _, name = path[1:].partition("/")
        assert caller.get(f"/{kind}/{name.upper()}").json()["id"] == name
    told = caller.post("/jobs/discard", {"filter": {}}).json()
    assert caller.get(f"/operations/{told['id'].upper()}").json()["id"] == told["id"]
    assert caller.post(f"/operations/{told['id'].upper()}/stop").status_code == 200
    printer.id = printer.id.upper()
    assert printer.ping()["alive"]
    assert caller.delete(f"/jobs/{str(job.pk).upper()}").status_code == 204


def test_no_address_has_an_id_in_one_case_only():
    for _, _, path, _, _ in operations():
        assert "{uuid:" not in path
        assert "{uuidstr:" not in path


def test_a_database_that_is_not_there_is_a_problem(token):
    caller = token("read")
    for name in ("nothing", "immediate", "default'"):
        assert caller.get(f"/queues?using={name}").status_code == 404


@pytest.mark.django_db(databases=["default", "other"])
def test_strangers_are_not_told_which_databases_there_are(token):
    unknown = "rq_" + "0" * 32 + "_" + "A" * 43
    for bearer in ("x", unknown):
        for name in ("default", "nothing", "immediate", "default'"):
            answer = Caller(bearer).get(f"/queues?using={name}")
            assert (answer.status_code, answer.json()["code"]) == (
                401,
                "unauthenticated",
            )


def test_a_cache_that_fails_keeps_nobody_out(token, monkeypatch):
    def fail(*args, **kwargs):
        raise ConnectionError("no cache")

    monkeypatch.setattr("django.core.cache.cache.add", fail)
    assert token("read").get("/queues").status_code == 200


def test_what_does_not_fit_is_told_in_the_words_of_the_request(token):
    caller = token("enqueue", "read")
    answer = caller.post("/jobs", {"task": 7, "args": 8})
    assert [it["where"] for it in answer.json()["errors"]] == ["body.task", "body.args"]
    answer = caller.get("/jobs?limit=x")
    assert [it["where"] for it in answer.json()["errors"]] == ["query.limit"]
    answer = caller.get("/jobs?enqueued_from=9999-12-31T23:59:59%2B00:00")
    assert answer.json()["detail"]


def test_bodies_are_json_or_refused_as_such(token):
    caller = token("enqueue")
    answer = caller.client.post(
        f"{ROOT}/jobs",
        "task=x",
        content_type="text/plain",
        headers={"Authorization": f"Bearer {caller.bearer}"},
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "not_json")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"task": "\xed\xa0\x80"}', id="half of a character"),
        pytest.param(rb'{"task": "\ud800"}', id="half of a character, escaped"),
        pytest.param(b'{"task": "\xff"}', id="no character"),
        pytest.param('{"task": "x"}'.encode("utf-16"), id="UTF-16"),
        pytest.param('{"task": "x"}'.encode("utf-16-le"), id="UTF-16, unmarked"),
        pytest.param('{"task": "x"}'.encode("utf-32"), id="UTF-32"),
        pytest.param('{"task": "x"}'.encode("utf-8-sig"), id="a byte order mark"),
        pytest.param(b'{"task": NaN}', id="no number"),
        pytest.param(b"[" * 100_000, id="deep"),
    ],
)
def test_bodies_are_in_utf_8_and_whole(token, body):
    caller = token("enqueue")
    answer = caller.client.post(
        f"{ROOT}/jobs",
        body,
        content_type="application/json",
        headers={"Authorization": f"Bearer {caller.bearer}"},
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")


def test_what_can_be_got_can_be_asked_about(token):
    rows.ready()
    answer = token("read").request("HEAD", "/jobs")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("path", ["/jobs", "/jobs/stream"])
def test_moments_have_a_time_zone_also_where_the_project_has_none(
    token, settings, path
):
    settings.USE_TZ, settings.TIME_ZONE = False, "Asia/Tokyo"
    nine = datetime(2026, 11, 18, 9, 0)  # noqa: DTZ001
    rows.ready(of=rows.job(enqueued_at=nine))
    answer = token("read").get(path)
    content = b"".join(answer) if answer.streaming else answer.content
    assert re.search(
        rb'"enqueued_at": "2026-11-18T(09:00:00.000000\+09:00|00:00:00.000000Z)',
        content,
    )


@pytest.mark.parametrize("path", ["/jobs", "/jobs/stream"])
@pytest.mark.parametrize("microsecond", [415_926, 0])
def test_moments_are_told_as_exactly_as_they_are_compared(token, path, microsecond):
    moment = datetime(2026, 11, 18, 9, 0, 0, microsecond, tzinfo=UTC)
    rows.ready(of=rows.job(enqueued_at=moment))
    answer = token("read").get(path)
    content = b"".join(answer) if answer.streaming else answer.content
    (told,) = re.findall(rb'"enqueued_at": "(.*?)"', content)
    assert told.decode() == f"2026-11-18T09:00:00.{microsecond:06}Z"
