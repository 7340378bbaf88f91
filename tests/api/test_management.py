"""Queues, processes, recurring tasks and statistics over the API."""

import logging
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.utils import timezone

from robust_queue import Concurrency, external_task
from robust_queue.api.app import api
from robust_queue.lifecycle import roster, timetable
from robust_queue.lifecycle.enlist import enlist
from robust_queue.models import Job, Pause, RecurringTask, Tuning
from robust_queue.models.recurring import Outcome
from tests.support import rows
from tests.support.invariants import states
from tests.testapp import tasks

from .conftest import Outsider

pytestmark = pytest.mark.django_db

NOTE = tasks.note.module_path
TYPED = tasks.typed.module_path


@pytest.fixture
def chief(token):
    return token("read", "operate", "enqueue")


class TestQueues:
    def test_tell_how_deep_they_are_and_who_listens(self, chief, render):
        rows.ready(), rows.scheduled(), rows.claimed(by=rows.process())
        enlist("default", queues=["pdf"], name="printer")
        found = {each["name"]: each for each in chief.get("/queues").json()}
        default = found["default"]
        assert (default["ready"], default["scheduled"], default["running"]) == (1, 1, 1)
        assert [it["is_external"] for it in default["listeners"]] == [False]
        (printer,) = chief.get("/queues/pdf").json()["listeners"]
        assert printer["is_external"]
        assert printer["name"].startswith("printer-")

    def test_are_paused_and_resumed(self, chief):
        rows.scheduled(of=rows.job(queue_name="mail"))
        later = (timezone.now() + timedelta(hours=1)).isoformat()
        told = chief.post("/queues/mail/pause", {"until": later})
        assert told.json() == {"changed": True}
        queue = chief.get("/queues/mail").json()
        assert queue["is_paused"]
        assert queue["paused_until"] is not None
        assert chief.post("/queues/mail/pause").json() == {"changed": False}
        assert chief.post("/queues/mail/resume").json() == {"changed": True}
        assert chief.post("/queues/mail/resume").json() == {"changed": False}

    def test_are_cleared(self, chief):
        left = rows.failed().job
        rows.ready(), rows.scheduled(), rows.blocked()
        told = chief.delete("/queues/default/jobs?state=ready&state=blocked").json()
        assert told == {"deleted": 2, "is_complete": True}
        running = rows.claimed().job
        told = chief.delete("/queues/default/jobs?state=pending").json()
        assert told["deleted"] == 1
        rows.ready()
        assert chief.delete("/queues/default/jobs").json()["deleted"] == 1
        assert states() == {left.pk: "failed", running.pk: "claimed"}

    def test_are_not_cleared_by_a_misspelt_wish(self, chief):
        rows.ready()
        for path in ("jobs?stat=scheduled", "jobs?state=ready&stat=x"):
            answer = chief.delete(f"/queues/default/{path}")
            assert answer.status_code == 422
            assert answer.json()["errors"][0]["where"] == "query.stat"
        assert chief.post("/queues/default/pause?utnil=x").status_code == 422
        assert [*states().values()] == ["ready"]

    @pytest.mark.parametrize("name", ["a/b", "ä ö", "x%2Fy"])
    def test_have_all_kinds_of_names(self, chief, name):
        rows.ready(of=rows.job(queue_name=name))
        from urllib.parse import quote

        assert chief.get(f"/queues/{quote(name)}").json()["ready"] == 1
        assert chief.post(f"/queues/{quote(name)}/pause").json() == {"changed": True}

    @pytest.mark.parametrize("ending", ["jobs", "pause", "resume"])
    def test_may_end_as_addresses_do(self, chief, ending):
        name = f"mail/{ending}"
        rows.ready(of=rows.job(queue_name=name)), rows.ready(of=rows.job())
        told = chief.get(f"/queues/{name}").json()
        assert (told["name"], told["ready"]) == (name, 1)
        assert chief.post(f"/queues/{name}/pause").json() == {"changed": True}
        assert chief.get(f"/queues/{name}").json()["is_paused"]
        assert not chief.get("/queues/mail").json()["is_paused"]
        assert chief.post(f"/queues/{name}/resume").json() == {"changed": True}
        assert chief.delete(f"/queues/{name}/jobs").json()["deleted"] == 1
        answer = chief.put(f"/queues/{name}")
        assert answer.status_code == 405
        assert "GET" in answer["Allow"]

    @pytest.mark.parametrize(
        "name", ["*", "%20", "a%00b", "x" * 129, "a%0Ab", "defualt"]
    )
    def test_have_no_others(self, chief, name):
        rows.ready(), rows.process()
        answers = [
            chief.get(f"/queues/{name}"),
            chief.post(f"/queues/{name}/pause"),
            chief.post(f"/queues/{name}/resume"),
            chief.delete(f"/queues/{name}/jobs"),
        ]
        assert {each.status_code for each in answers} == {404}
        assert not Pause.objects.exists()

    def test_are_named_by_tasks_jobs_workers_pauses_and_statistics(self, chief, render):
        for make in (rows.ready, rows.scheduled, rows.blocked, rows.claimed):
            make(of=rows.job(queue_name=make.__name__))
        rows.process(metadata='{"queues": ["served", "beginning*"]}')
        rows.pause(queue_name="paused"), rows.rollup(queue_name="past")
        for name in ("ready", "scheduled", "blocked", "claimed", "served", "past"):
            assert chief.get(f"/queues/{name}").json()["name"] == name
        assert chief.get("/queues/pdf").json()["ready"] == 0
        assert chief.post("/queues/paused/resume").json() == {"changed": True}
        assert chief.post("/queues/paused/resume").status_code == 404
        assert chief.get("/queues/beginning").status_code == 404

    def test_are_not_cleared_of_more_than_is_meant(self, chief):
        """What is said where nobody reads it would have meant less."""
        rows.scheduled()
        answer = chief.delete("/queues/default/jobs", {"state": ["ready"]})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert [it["where"] for it in answer.json()["errors"]] == ["body"]
        rows.pause()
        resumed = chief.post("/queues/default/resume", {"until": "nonsense"})
        assert resumed.status_code == 422
        assert Pause.objects.exists()
        assert chief.post("/queues/default/resume", {}).status_code == 200
        assert chief.delete("/queues/default/jobs?state=ready").json()["deleted"] == 0
        assert Job.objects.exists()

    def test_are_not_paused_until_a_moment_that_has_passed(self, chief):
        answer = chief.post("/queues/default/pause", {"until": "2001-01-01T00:00:00Z"})
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_moment")


class TestProcesses:
    def test_are_told_with_what_they_run(self, chief):
        worker = rows.process()
        job = rows.claimed(by=worker).job
        rows.process("Dispatcher", silent_for=timedelta(hours=1))
        found = {it["kind"]: it for it in chief.get("/processes").json()}
        assert found["Worker"]["is_alive"]
        assert not found["Dispatcher"]["is_alive"]
        assert [it["job"] for it in found["Worker"]["worker"]["runs"]] == [str(job.pk)]
        one = chief.get(f"/processes/{worker.pk}").json()
        assert one["name"] == worker.name
        assert chief.get(f"/processes/{uuid4()}").status_code == 404

    def test_outside_tell_what_they_are_and_no_threads(self, chief, render):
        rows.process(metadata='{"queues": ["*"], "threads": 5}')
        Outsider(name="printer", version="1.2")
        ours, printer = [it["worker"] for it in chief.get("/processes").json()]
        assert (ours["threads"], ours["is_external"], ours["version"]) == (5, False, "")
        told = printer["threads"], printer["is_external"], printer["version"]
        assert told == (None, True, "1.2")
        out = StringIO()
        call_command("robust_queue", "workers", stdout=out)
        listed = {each.split()[0]: each.split() for each in out.getvalue().splitlines()}
        (name,) = (each for each in listed if each.startswith("printer-"))
        # Its queue, and how busy it is.
        assert listed[name][-2:] == ["pdf", "0"]

    def test_outside_are_not_taken_to_be_busy(self, chief, render):
        printer = Outsider()
        for _ in range(4):
            waiting = render.enqueue().id
        assert len(printer.dequeue(limit=3)["jobs"]) == 3
        told = chief.get(f"/jobs/{waiting}").json()
        assert told["reasons"] == ["It is the next of its queue."]

    def test_are_found_however_many_others_there_are(self, chief, monkeypatch):
        monkeypatch.setattr(roster, "MOST_PROCESSES", 1)
        made = [rows.process(), rows.process(), rows.process()]
        assert len(chief.get("/processes").json()) == 1
        for each in made:
            found = chief.get(f"/processes/{each.pk}")
            assert (found.status_code, found.json()["name"]) == (200, each.name)

    def test_are_asked_to_be_quiet_and_to_stop(self, chief):
        worker = rows.process()
        for verb in ("quiet", "wake", "stop"):
            told = chief.post(f"/processes/{worker.pk}/{verb}")
            assert told.json() == {"asked": True}
        assert Tuning.objects.get(pk=worker.pk).is_to_stop

    def test_that_are_gone_cannot_be_asked(self, chief):
        silent = rows.process(silent_for=timedelta(hours=1))
        assert chief.post(f"/processes/{silent.pk}/stop").status_code == 409
        assert chief.post(f"/processes/{uuid4()}/stop").status_code == 404


def _of_nobody(customer):
    raise ValueError(f"There is no account of {customer}.")


class TestRecurring:
    @pytest.mark.parametrize("scope", ["operate", "read_arguments"])
    def test_tell_of_errors_what_may_be_seen_of_arguments(self, token, render, scope):
        """Whose code raises them may have put anything into their words."""
        key = Concurrency(key=_of_nobody)
        external_task("odd", queue_name="pdf", signature=_of_nobody, concurrency=key)
        timetable.schedule("default", "k", "odd", schedule="@daily", args=["hunter2"])
        refused = token("operate", scope).post("/recurring/k/run")
        assert refused.status_code == 409
        rows.recurring_execution(
            task_key="k",
            job_id=None,
            outcome=Outcome.REFUSED,
            reason="InvalidTask: There is no account of hunter2.",
        )
        (run,) = token("read", scope).get("/runs?key=k").json()
        for told in (refused.json()["detail"], run["reason"]):
            assert "InvalidTask" in told
            assert ("hunter2" in told) is (scope == "read_arguments")

    NEW = {"key": "nightly/1", "task": NOTE, "schedule": "0 3 * * *", "args": [1]}

    def test_are_made_changed_and_deleted(self, chief, token):
        answer = chief.post("/recurring", self.NEW)
        assert answer.status_code == 201, answer.content
        assert answer.json()["state"] == "active"
        told = token("read_arguments").get("/recurring/nightly/1").json()
        assert (told["args"], told["contents"]) == ([1], "shown")
        body = {"task": NOTE, "schedule": "0 4 * * *", "queue": "slow"}
        told = chief.put("/recurring/nightly/1", body).json()
        assert (told["schedule"], told["queue"]) == ("0 4 * * *", "slow")
        assert [it["key"] for it in chief.get("/recurring").json()] == ["nightly/1"]
        assert chief.get("/recurring?after=nightly/1").json() == []
        assert chief.delete("/recurring/nightly/1").status_code == 204
        assert not RecurringTask.objects.exists()
        assert chief.delete("/recurring/nightly/1").status_code == 404

    def test_are_paused_resumed_and_run(self, chief):
        chief.post("/recurring", self.NEW)
        assert chief.post("/recurring/nightly/1/pause").json() == {"changed": True}
        assert chief.get("/recurring/nightly/1").json()["state"] == "paused"
        run = chief.post("/recurring/nightly/1/run")
        assert (run.status_code, run.json()["by_hand"]) == (201, True)
        assert str(Job.objects.get().pk) == run.json()["job"]
        assert chief.post("/recurring/nightly/1/resume").json() == {"changed": True}
        (told,) = chief.get("/runs?key=nightly/1").json()
        assert told["outcome"] == "enqueued"

    @pytest.mark.parametrize("ending", ["pause", "resume", "run", "runs"])
    def test_have_keys_that_end_as_addresses_do(self, chief, ending):
        key = f"nightly/1/{ending}"
        assert chief.post("/recurring", self.NEW).status_code == 201
        assert chief.post("/recurring", {**self.NEW, "key": key}).status_code == 201
        assert chief.get(f"/recurring/{key}").json()["key"] == key
        body = {"task": NOTE, "schedule": "0 4 * * *"}
        assert chief.put(f"/recurring/{key}", body).json()["schedule"] == "0 4 * * *"
        assert chief.post(f"/recurring/{key}/pause").json() == {"changed": True}
        assert chief.post(f"/recurring/{key}/run").status_code == 201
        assert chief.get(f"/recurring/{key}").json()["state"] == "paused"
        assert len(chief.get(f"/runs?key={key}").json()) == 1
        assert chief.get("/runs?key=nightly/1").json() == []
        assert chief.delete(f"/recurring/{key}").status_code == 204
        (left,) = RecurringTask.objects.all()
        assert (left.key, left.enabled) == ("nightly/1", True)

    @pytest.mark.parametrize(
        ("change", "status", "code"),
        [
            ({"schedule": "often"}, 422, "bad_timetable"),
            ({"timezone": "Mars/Base"}, 422, "bad_timetable"),
            ({"task": "os.system"}, 404, "unknown_task"),
            ({"task": TYPED, "args": ["x"]}, 422, "bad_arguments"),
            ({"overlap": "maybe"}, 422, "invalid"),
        ],
    )
    def test_that_make_no_sense_are_refused(self, chief, change, status, code):
        answer = chief.post("/recurring", {**self.NEW, **change})
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert not RecurringTask.objects.exists()

    def test_keep_their_keys_to_themselves(self, chief):
        chief.post("/recurring", self.NEW)
        answer = chief.post("/recurring", self.NEW)
        assert (answer.status_code, answer.json()["code"]) == (409, "refused")
        assert "PUT changes it" in answer.json()["detail"]

    def test_that_are_declared_are_changed_in_code(self, chief):
        rows.recurring_task(key="declared", static=True, declared_at=timezone.now())
        body = {"task": NOTE, "schedule": "0 4 * * *"}
        assert chief.put("/recurring/declared", body).status_code == 409
        assert chief.delete("/recurring/declared").status_code == 409


class TestOverview:
    def test_tells_what_happened(self, chief):
        told = chief.get("/statistics?period=day").json()
        assert (len(told["points"]), told["total"]["finished"]) == (96, 0)
        assert chief.get("/statistics?queue=default").json()["queue"] == "default"
        answer = chief.get("/statistics?queue=defualt")
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_queue")
        assert chief.get("/statistics?period=year").status_code == 422

    def test_tells_whether_anything_is_wrong(self, chief):
        answer = chief.get("/health")
        assert answer.status_code == 503
        assert not answer.json()["is_healthy"]
        for kind in ("Supervisor", "Worker", "Dispatcher"):
            rows.process(kind)
        answer = chief.get("/health")
        assert (answer.status_code, answer.json()["is_healthy"]) == (200, True)


class TestLog:
    """A line for whatever is changed, which tells what it is about."""

    @pytest.fixture
    def log(self, caplog):
        caplog.set_level(logging.INFO, "robust_queue.api")

        def lines():
            ours = (it for it in caplog.records if it.name == "robust_queue.api")
            return [each.getMessage() for each in ours]

        return lines

    def test_tells_queues_and_recurring_tasks_apart(self, chief, log):
        chief.post("/recurring", {**TestRecurring.NEW, "key": "default"})
        for verb in ("pause", "resume"):
            chief.post(f"/queues/default/{verb}")
            chief.post(f"/recurring/default/{verb}")
        chief.delete("/queues/default/jobs")
        chief.post("/recurring/default/run")
        chief.delete("/recurring/default")
        who = "token read-operate-enqueue"
        assert log() == [
            f"{who}: schedule recurring default",
            f"{who}: pause queue default",
            f"{who}: pause recurring default",
            f"{who}: resume queue default",
            f"{who}: resume recurring default",
            f"{who}: clear queue default 0 jobs",
            f"{who}: run recurring default",
            f"{who}: unschedule recurring default",
        ]

    def test_tells_which_operation_was_stopped(self, chief, log):
        told = chief.post("/jobs/discard", {"filter": {}}).json()
        assert chief.post(f"/operations/{told['id']}/stop").status_code == 200
        assert log()[-1] == f"token read-operate-enqueue: stop operation {told['id']}"
        again = chief.post(f"/operations/{told['id']}/stop")
        assert again.json()["detail"] == "The operation is over already."
        assert len(log()) == 2

    def test_tells_which_token_let_a_worker_in(self, log, render):
        printer = Outsider(name="printer")
        name = printer.facts["name"]
        render.enqueue()
        printer.take()
        printer.leave(), printer.leave()
        assert log() == [
            f"token outsider: register worker {name} {printer.id}",
            f"worker {name}: sign off, jobs that go back: 1",
        ]
        assert printer.facts["secret"] not in str(log())


def test_no_address_of_a_name_has_a_method_that_one_below_it_has():
    """Or nobody could tell which of two names is meant."""
    for router in api._get_bound_routers():
        for path, view in router.path_operations.items():
            methods = [it for each in view.operations for it in each.methods]
            assert len(methods) == len(set(methods)), path
