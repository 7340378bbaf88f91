"""What is done to jobs over the API, and what is enqueued."""

import logging
import re
from uuid import UUID, uuid4

import pytest

from robust_queue.api import doing, enqueueing, rerunning
from robust_queue.lifecycle.operations import carry_out
from robust_queue.models import Job, NamedRequest, Operation
from tests.support import rows
from tests.support.invariants import states
from tests.testapp import odd_types, tasks, unique_tasks

pytestmark = pytest.mark.django_db

NOTE = tasks.note.module_path
ADD = tasks.add.module_path


@pytest.fixture
def operator(token):
    return token("operate", "read")


def finish_operations():
    process = uuid4()
    while carry_out("default", process):
        pass


class TestOne:
    @pytest.mark.parametrize(
        ("make", "verb", "state"),
        [
            (rows.failed, "retry", "ready"),
            (rows.ready, "cancel", "failed"),
            (rows.scheduled, "run-now", "scheduled"),
        ],
    )
    def test_is_told_as_it_is_afterwards(self, operator, make, verb, state):
        job = make(of=rows.job(task_path=NOTE)).job
        answer = operator.post(f"/jobs/{job.pk}/{verb}")
        assert (answer.status_code, answer.json()["state"]) == (200, state)

    @pytest.mark.parametrize("verb", ["retry", "run-now"])
    def test_in_another_state_is_left_alone(self, operator, verb):
        job = rows.ready().job
        answer = operator.post(f"/jobs/{job.pk}/{verb}")
        assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
        assert states() == {job.pk: "ready"}

    def test_that_is_not_there(self, operator):
        for call in (operator.delete, lambda it: operator.post(f"{it}/retry")):
            answer = call(f"/jobs/{uuid4()}")
            assert (answer.status_code, answer.json()["code"]) == (404, "unknown_job")

    @pytest.mark.parametrize(
        "make", [rows.ready, rows.scheduled, rows.blocked, rows.failed, rows.finished]
    )
    def test_is_deleted_whether_it_waits_or_is_over(self, operator, make):
        job = make().job
        assert operator.delete(f"/jobs/{job.pk}").status_code == 204
        assert not Job.objects.exists()

    def test_that_runs_is_not_deleted(self, operator):
        job = rows.claimed().job
        assert operator.delete(f"/jobs/{job.pk}").json()["code"] == "wrong_state"
        assert Job.objects.exists()

    def test_cannot_write_lines_of_others_into_the_log(self, operator, caplog):
        caplog.set_level(logging.INFO, "robust_queue.api")
        body = {"filter": {"queue": "a\ntoken admin: discard 500 jobs"}}
        operator.post("/jobs/cancel", body)
        assert not [each for each in caplog.messages if "\n" in each]

    def test_is_written_into_the_log(self, operator, caplog):
        caplog.set_level(logging.INFO, "robust_queue.api")
        job = rows.failed(of=rows.job(task_path=NOTE)).job
        operator.post(f"/jobs/{job.pk}/retry")
        assert f"token operate-read: retry {job.pk}" in caplog.messages


class TestMany:
    def test_by_their_ids_at_once(self, operator):
        failed, ready = rows.failed().job, rows.ready().job
        gone = uuid4()
        answer = operator.post(
            "/jobs/retry", {"ids": [str(it) for it in (failed.pk, ready.pk, gone)]}
        )
        assert answer.status_code == 200
        told = answer.json()
        assert told["done"] == 1
        assert {it["id"]: it["state"] for it in told["left"]} == {
            str(ready.pk): "ready",
            str(gone): "gone",
        }

    def test_by_a_filter_in_the_background(self, operator):
        rare = rows.failed(of=rows.job(task_path=NOTE, queue_name="rare")).job
        rows.failed()
        answer = operator.post("/jobs/retry", {"filter": {"queue": "rare"}})
        assert answer.status_code == 202
        told = answer.json()
        assert (told["status"], told["requested_by"]) == (
            "waiting",
            "token operate-read",
        )
        finish_operations()
        told = operator.get(f"/operations/{told['id']}").json()
        assert (told["status"], told["done"]) == ("finished", 1)
        assert states()[rare.pk] == "ready"
        assert [it["id"] for it in operator.get("/operations").json()] == [told["id"]]

    def test_finished_ones_are_cleared(self, operator):
        rows.finished()
        left = rows.failed().job
        assert operator.post("/jobs/clear", {"filter": {}}).status_code == 202
        finish_operations()
        assert states() == {left.pk: "failed"}

    def test_pending_ones_are_cancelled(self, operator):
        rows.scheduled(), rows.ready()
        left = rows.finished().job
        operator.post("/jobs/cancel", {"filter": {"state": "pending"}})
        finish_operations()
        found = states()
        assert found.pop(left.pk) == "finished"
        assert [*found.values()] == ["failed", "failed"]

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("retry", {}),
            ("retry", {"ids": [], "filter": {}}),
            ("retry", {"ids": [str(UUID(int=1))], "filter": {}}),
            ("retry", {"filter": {"state": "finished"}}),
            ("retry", {"filter": {"quue": "x"}}),
            ("retry", {"filter": {}, "all": True}),
            ("clear", {"filter": {"state": "failed"}}),
            ("rerun", {"filter": {}}),
            ("rerun", {"filter": {"state": "claimed"}}),
        ],
    )
    def test_refuses_what_makes_no_sense(self, operator, path, body):
        rows.failed()
        assert operator.post(f"/jobs/{path}", body).status_code == 422
        assert not Operation.objects.exists()

    def test_of_an_operation_that_went_wrong_only_the_class_is_told(self, token):
        words = 'IntegrityError: the failing row contains "hunter2"'
        rows.failed()
        told = token("operate").post("/jobs/discard", {"filter": {}}).json()
        Operation.objects.update(problem=words)
        for scope, seen in (("read", "IntegrityError"), ("read_arguments", words)):
            found = token(scope).get(f"/operations/{told['id']}").json()
            assert found["problem"] == seen

    def test_an_operation_is_stopped_once(self, operator):
        rows.failed()
        told = operator.post("/jobs/discard", {"filter": {}}).json()
        path = f"/operations/{told['id']}/stop"
        assert operator.post(path).json()["status"] == "stopped"
        assert operator.post(path).json()["code"] == "wrong_state"
        finish_operations()
        assert Job.objects.count() == 1


class TestRerun:
    def test_puts_a_new_job_in_its_place(self, token):
        old = rows.failed(of=rows.job(task_path=NOTE)).job
        operator = token("operate", "read", f"enqueue:{NOTE}")
        answer = operator.post(f"/jobs/{old.pk}/rerun", {"queue": "x", "priority": 3})
        assert answer.status_code == 201
        told = answer.json()
        assert (told["queue"], told["priority"], told["state"]) == ("x", 3, "ready")
        assert [str(it) for it in states()] == [told["id"]]

    def test_with_other_arguments_takes_the_leave_to_enqueue(self, operator, token):
        old = rows.failed(of=rows.job(task_path=ADD)).job
        body = {"args": [1], "kwargs": {"b": 2}}
        answer = operator.post(f"/jobs/{old.pk}/rerun", body)
        assert answer.status_code == 403
        both = token("operate", "read_arguments", f"enqueue:{ADD}")
        told = both.post(f"/jobs/{old.pk}/rerun", body).json()
        assert (told["args"], told["kwargs"]) == ([1], {"b": 2})

    def test_in_another_queue_takes_it_as_well(self, operator):
        """Somebody else may serve that one, and be told what it is about."""
        old = rows.failed(of=rows.job(task_path=ADD)).job
        answer = operator.post(f"/jobs/{old.pk}/rerun", {"queue": "mine"})
        assert answer.status_code == 403
        body = {"filter": {"state": "failed"}, "queue": "mine"}
        assert operator.post("/jobs/rerun", body).status_code == 403
        assert states() == {old.pk: "failed"}

    def test_tells_no_more_than_it_has_to(self, token):
        """Keys are made from arguments, and who may not look gets none of it."""
        old = rows.failed(of=rows.job(task_path=NOTE, concurrency_key="ada")).job
        operator = token("operate")
        told = operator.post(f"/jobs/{old.pk}/rerun").json()
        assert told == {"id": str(Job.objects.get().pk), "state": "ready"}

    def test_quotes_no_arguments_to_who_may_not_see_them(self, token):
        """Why a job cannot be enqueued anew may tell what it was called with."""
        unknown = '{"args":[],"kwargs":{"to":{"$type":"hunter2"}}}'
        old = rows.failed(of=rows.job(task_path=NOTE, arguments=unknown)).job
        operator, chief = token("operate"), token("operate", "read_arguments")
        for caller, is_told in ((operator, False), (chief, True)):
            one = caller.post(f"/jobs/{old.pk}/rerun")
            many = caller.post("/jobs/rerun", {"filter": {"state": "failed"}})
            assert (one.status_code, one.json()["code"]) == (409, "not_replaceable")
            for answer in (one, many):
                text = answer.content.decode()
                assert ("hunter2" in text) is is_told
                assert is_told or "DeserializationError" in text

    def test_quotes_no_key_either(self, token):
        old = rows.failed(of=rows.job(task_path=odd_types.keyed.module_path)).job
        new_call = {"args": [], "kwargs": {"name": "hunter2"}}
        for caller, body, is_told in (
            (token("operate"), None, False),
            # What somebody has sent is no secret to them.
            (token("operate", "enqueue"), new_call, True),
        ):
            answer = caller.post(f"/jobs/{old.pk}/rerun", body)
            assert (answer.status_code, answer.json()["code"]) == (422, "bad_call")
            assert ("KeyError: " in answer.json()["detail"]) is is_told

    @pytest.mark.parametrize(
        ("edit", "status", "code"),
        [
            ({"args": ["x" * 2_000_000], "kwargs": {}}, 413, "too_large"),
            ({"queue": "*"}, 422, "bad_call"),
            ({"run_after": "0001-01-01T00:00:00+14:00"}, 422, "bad_call"),
            ({"run_after": "9999-12-31T23:59:59-14:00"}, 422, "bad_call"),
            ({"args": [], "kwargs": {}}, 422, "bad_arguments"),
        ],
    )
    def test_refuses_what_an_enqueue_refuses(self, token, edit, status, code):
        old = rows.failed(of=rows.job(task_path=ADD)).job
        answer = token("operate", "enqueue").post(f"/jobs/{old.pk}/rerun", edit)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert states() == {old.pk: "failed"}

    def test_of_a_unique_task_has_no_key_that_another_one_has(self, token):
        unique_tasks.once.enqueue("taken")
        key = Job.objects.get().unique_key
        old = rows.failed(of=rows.job(task_path=unique_tasks.once.module_path)).job
        body = {"args": ["taken"], "kwargs": {}}
        answer = token("operate", "enqueue").post(f"/jobs/{old.pk}/rerun", body)
        assert (answer.status_code, answer.json()["code"]) == (409, "duplicate")
        assert key not in answer.content.decode()

    def test_what_runs_is_not_replaced(self, operator):
        old = rows.claimed().job
        answer = operator.post(f"/jobs/{old.pk}/rerun")
        assert (answer.status_code, answer.json()["code"]) == (409, "not_replaceable")

    def test_what_has_finished_stays(self, token):
        operator = token("operate", f"enqueue:{NOTE}")
        old = rows.finished(of=rows.job(task_path=NOTE)).job
        new = operator.post(f"/jobs/{old.pk}/rerun").json()["id"]
        assert states() == {old.pk: "finished", UUID(new): "ready"}
        told = operator.post("/jobs/rerun", {"filter": {"state": "finished"}}).json()
        assert [it["old"] for it in told["jobs"]] == [str(old.pk)]
        assert [*states().values()].count("ready") == 2

    def test_of_what_has_finished_takes_the_leave_to_enqueue(self, operator):
        """It stays, so that there is one job more."""
        old = rows.finished(of=rows.job(task_path=NOTE)).job
        assert operator.post(f"/jobs/{old.pk}/rerun").status_code == 403
        body = {"filter": {"state": "finished"}}
        assert operator.post("/jobs/rerun", body).status_code == 403
        assert states() == {old.pk: "finished"}

    def test_some_at_a_time_and_none_twice(self, operator):
        for _ in range(5):
            rows.failed(of=rows.job(task_path=NOTE))
        body = {"filter": {"state": "failed"}, "priority": 9, "limit": 2}
        replaced = []
        while True:
            told = operator.post("/jobs/rerun", body).json()
            replaced += [it["old"] for it in told["jobs"]]
            if told["next"] is None:
                break
            body["behind"] = told["next"]
        assert len(replaced) == len(set(replaced)) == 5
        assert {job.priority for job in Job.objects.all()} == {9}
        assert [*states().values()] == ["ready"] * 5

    @pytest.mark.parametrize("state", [None, "claimed"])
    def test_of_many_takes_a_state(self, operator, state):
        body = {"filter": {"state": state} if state else {}}
        answer = operator.post("/jobs/rerun", body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert answer.json()["detail"].startswith("Name a state in the filter: ")

    @pytest.mark.parametrize("half", [{"args": []}, {"kwargs": {}}])
    def test_takes_no_half_of_a_call(self, token, half):
        old = rows.failed(of=rows.job(task_path=NOTE)).job
        answer = token("operate", "enqueue").post(f"/jobs/{old.pk}/rerun", half)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert answer.json()["detail"].startswith("Give both args and kwargs: ")

    def test_of_all_that_is_pending_what_runs_is_left_alone(self, operator):
        waiting = rows.ready(of=rows.job(task_path=NOTE)).job
        running = rows.claimed(of=rows.job(task_path=NOTE)).job
        body = {"filter": {"state": "pending"}, "priority": 9}
        told = operator.post("/jobs/rerun", body).json()
        new = {it["old"]: it["new"] for it in told["jobs"]}
        assert new[str(running.pk)] is None
        assert new[str(waiting.pk)] is not None
        assert states()[running.pk] == "claimed"


class TestGoneAtOnce:
    """A worker may be through with a job before it is told of, and leave nothing."""

    @pytest.fixture
    def gone_behind(self, monkeypatch):
        """Every job goes, as soon as that function is through."""

        def swift(module, name):
            function = getattr(module, name)

            def followed(*args, **kwargs):
                answer = function(*args, **kwargs)
                Job.objects.all().delete()
                return answer

            monkeypatch.setattr(module, name, followed)

        return swift

    def test_what_was_enqueued_is_told_of(self, token, gone_behind):
        gone_behind(enqueueing, "write_once")
        body = {"task": ADD, "args": [1], "kwargs": {"b": 2}, "queue": "x"}
        answer = token("enqueue", "read_arguments").post("/jobs", body)
        assert answer.status_code == 201, answer.content
        told = answer.json()
        assert (told["task"], told["queue"], told["state"]) == (ADD, "x", "gone")
        assert (told["args"], told["kwargs"]) == ([1], {"b": 2})

    def test_what_was_replaced_is_told_of(self, token, gone_behind):
        old = rows.failed(of=rows.job(task_path=ADD)).job
        gone_behind(rerunning, "rerun")
        body = {"args": [1], "kwargs": {}}
        operator = token("operate", "enqueue", "read_arguments")
        answer = operator.post(f"/jobs/{old.pk}/rerun", body)
        assert answer.status_code == 201, answer.content
        told = answer.json()
        assert (told["task"], told["state"], told["args"]) == (ADD, "gone", [1])
        assert told["id"] != str(old.pk)

    @pytest.mark.parametrize("verb", ["retry", "cancel", "run-now"])
    @pytest.mark.parametrize("scope", ["read", "work"])
    def test_to_which_something_was_done_is_told_of(
        self, token, gone_behind, verb, scope
    ):
        make = {"retry": rows.failed, "cancel": rows.ready}.get(verb, rows.scheduled)
        job = make(of=rows.job(task_path=NOTE)).job
        gone_behind(doing, "do_to")
        answer = token("operate", scope).post(f"/jobs/{job.pk}/{verb}")
        assert answer.status_code == 200, answer.content
        told = answer.json()
        assert (told["id"], told["state"]) == (str(job.pk), "gone")
        assert ("task" in told) is (scope == "read")

    def test_that_was_there_before_and_whose_period_goes_on(self, token):
        body = {"task": unique_tasks.hourly_without_trace.module_path}
        caller = token("enqueue")
        first = caller.post("/jobs", body).json()
        Job.objects.all().delete()
        answer = caller.post("/jobs", body)
        assert answer.status_code == 201, answer.content
        told = answer.json()
        assert (told["id"], told["state"]) == (first["id"], "gone")


class TestEnqueue:
    def test_a_call_of_a_declared_task(self, token):
        body = {"task": ADD, "args": [1], "kwargs": {"b": 2}, "priority": 5}
        answer = token("enqueue:tests.*").post("/jobs", body)
        assert answer.status_code == 201, answer.content
        told = answer.json()
        assert (told["task"], told["state"], told["priority"]) == (ADD, "ready", 5)
        job = Job.objects.get()
        assert str(job.pk) == told["id"]
        assert told["contents"] == "hidden"

    def test_later_and_in_another_queue(self, token):
        later = "2100-01-01T00:00:00+00:00"
        body = {"task": NOTE, "queue": "slow", "run_after": later}
        told = token("enqueue").post("/jobs", body).json()
        assert (told["queue"], told["state"]) == ("slow", "scheduled")

    def test_an_external_one(self, token, render):
        told = token("enqueue:render-*").post("/jobs", {"task": "render-pdf"}).json()
        assert told["queue"] == "pdf"

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({"task": "os.system", "args": ["true"]}, 404, "unknown_task"),
            ({"task": "tests.testapp.tasks"}, 404, "unknown_task"),
            ({"task": ADD}, 422, "bad_arguments"),
            ({"task": ADD, "args": [1, 2, 3]}, 422, "bad_arguments"),
            ({"task": ADD, "kwargs": {"c": 1}}, 422, "bad_arguments"),
            ({"task": NOTE, "priority": 101}, 422, "invalid"),
            ({"task": NOTE, "queue": "*"}, 422, "bad_call"),
            ({"task": NOTE, "module": "os"}, 422, "invalid"),
            ({"task": NOTE, "args": {"a": 1}}, 422, "invalid"),
            ({"args": []}, 422, "invalid"),
        ],
    )
    def test_refuses_what_cannot_be_called(self, token, body, status, code):
        answer = token("enqueue").post("/jobs", body)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert not Job.objects.exists()

    @pytest.mark.parametrize("task", [ADD, "os.system", "x"])
    def test_tells_nothing_of_tasks_that_are_not_allowed(self, token, task):
        answer = token(f"enqueue:{NOTE}").post("/jobs", {"task": task, "args": [1]})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")

    def test_refuses_too_much(self, token, settings):
        settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
        answer = token("enqueue").post("/jobs", {"task": NOTE, "args": ["x" * 200]})
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")

    def test_again_under_its_name_is_answered_with_the_job_that_is_there(self, token):
        caller, request_id = token("enqueue", "read_arguments"), str(uuid4())
        body = {"task": NOTE, "args": ["x"], "request_id": request_id}
        first, second = (caller.post("/jobs", body) for _ in range(2))
        assert (second.status_code, second.json()) == (201, first.json())
        assert Job.objects.count() == 1
        Job.objects.all().delete()
        gone = caller.post("/jobs", body).json()
        assert (gone["id"], gone["state"]) == (first.json()["id"], "gone")

    def test_under_a_name_that_was_given_before_is_refused(self, token):
        caller, request_id = token("enqueue"), str(uuid4())
        calls = [{"task": NOTE, "args": [n], "request_id": request_id} for n in (1, 2)]
        answers = [caller.post("/jobs", each) for each in calls]
        assert [each.status_code for each in answers] == [201, 409]
        told = answers[1].json()
        assert (told["code"], told["errors"]) == ("request_reused", [])
        assert Job.objects.count() == 1

    def test_under_the_name_of_somebody_else_is_their_own(self, token):
        body = {"task": NOTE, "request_id": str(uuid4())}
        told = [token("enqueue").post("/jobs", body).json()["id"] for _ in range(2)]
        assert len({*told}) == Job.objects.count() == 2

    def test_lists_what_there_is(self, token, render):
        told = token("read", f"enqueue:{ADD}").get("/tasks").json()
        found = {each["name"]: each for each in told}
        assert found[ADD]["may_enqueue"]
        assert not found[NOTE]["may_enqueue"]
        assert found[ADD]["signature"] == "(a, b=0)"
        assert found["render-pdf"]["kind"] == "external"

    def test_does_not_tell_what_secrets_are_by_default(self, token):
        told = token("read").get("/tasks").json()
        found = {each["name"]: each["signature"] for each in told}
        text = found[tasks.with_secret_defaults.module_path]
        assert "hunter2" not in text
        assert re.fullmatch(
            r"\(value=\('x',\), \*, api_key='•+', options=\{'password': '•+'\}\)", text
        )


class TestEnqueueMany:
    def test_in_their_order(self, token, django_assert_max_num_queries):
        calls = [{"task": ADD, "args": [n], "queue": f"q{n}"} for n in range(50)]
        caller = token("enqueue", "read_arguments")
        with django_assert_max_num_queries(12):
            answer = caller.post("/jobs/enqueue", {"jobs": calls})
        assert answer.status_code == 201, answer.content
        told = answer.json()["jobs"]
        assert [each["queue"] for each in told] == [f"q{n}" for n in range(50)]
        assert {each["state"] for each in told} == {"ready"}
        assert {*states()} == {UUID(each["id"]) for each in told}

    def test_that_are_gone_are_told_of_without_arguments_too(self, token):
        body = {"jobs": [{"task": NOTE, "args": ["z"], "request_id": str(uuid4())}]}
        caller = token("enqueue", "read_arguments")
        caller.post("/jobs/enqueue", body)
        Job.objects.all().delete()
        (told,) = caller.post("/jobs/enqueue", body).json()["jobs"]
        assert (told["state"], told["args"]) == ("gone", None)

    def test_again_by_their_names(self, token):
        calls = [{"task": NOTE, "request_id": str(uuid4())} for _ in range(3)]
        caller = token("enqueue")
        first = caller.post("/jobs/enqueue", {"jobs": calls[:2]}).json()["jobs"]
        again = caller.post("/jobs/enqueue", {"jobs": calls}).json()["jobs"]
        ids = [each["id"] for each in again]
        assert ids[:2] == [each["id"] for each in first]
        assert len({*ids}) == Job.objects.count() == 3

    @pytest.mark.parametrize(
        ("wrong", "status", "code", "where"),
        [
            ({"task": ADD, "args": [[1], 2, 3]}, 422, "bad_arguments", "jobs.1"),
            ({"task": tasks.typed.module_path, "args": ["1"]}, 422, "bad_arguments",
             "jobs.1.args.0"),
            ({"task": "os.system"}, 403, "forbidden", "jobs.1"),
            ({"task": "tests.gone"}, 404, "unknown_task", "jobs.1"),
            ({"task": NOTE, "queue": "*"}, 422, "bad_call", "jobs.1"),
            ({"task": NOTE, "priority": 101}, 422, "invalid", "body.jobs.1.priority"),
            ({"task": NOTE, "args": ["x" * 1_100_000]}, 413, "too_large", "jobs.1"),
        ],
    )  # fmt: skip
    def test_all_or_none(self, token, wrong, status, code, where):
        calls = [{"task": NOTE, "request_id": str(uuid4())}, wrong, {"task": NOTE}]
        answer = token("enqueue:tests.*").post("/jobs/enqueue", {"jobs": calls})
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert [each["where"] for each in answer.json()["errors"]] == [where]
        assert not Job.objects.exists()
        assert not NamedRequest.objects.exists()

    def test_that_are_refused_are_named(self, token):
        once, taken = unique_tasks.once_or_error.module_path, str(uuid4())
        caller = token("enqueue")
        for body in ({"task": once}, {"task": NOTE, "request_id": taken}):
            assert caller.post("/jobs", body).status_code == 201
        for call, code in (
            ({"task": once}, "duplicate"),
            ({"task": ADD, "args": [1], "request_id": taken}, "request_reused"),
        ):
            calls = [{"task": NOTE}, {"task": NOTE}, call]
            answer = caller.post("/jobs/enqueue", {"jobs": calls})
            assert (answer.status_code, answer.json()["code"]) == (409, code)
            assert [it["where"] for it in answer.json()["errors"]] == ["jobs.2"]
        assert Job.objects.count() == 2

    def test_of_one_name_are_refused(self, token):
        call = {"task": NOTE, "request_id": str(uuid4())}
        answer = token("enqueue").post("/jobs/enqueue", {"jobs": [call, call]})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert answer.json()["errors"][0]["where"] == "jobs.1"

    @pytest.mark.parametrize("count", [0, 501])
    def test_none_and_too_many(self, token, count):
        body = {"jobs": [{"task": NOTE}] * count}
        assert token("enqueue").post("/jobs/enqueue", body).status_code == 422

    def test_are_told_of_without_arguments(self, token):
        body = {"jobs": [{"task": NOTE, "args": ["hunter2"]}]}
        answer = token("enqueue", "read_arguments").post("/jobs/enqueue", body)
        assert "hunter2" not in answer.content.decode()

    def test_of_a_unique_task_are_told_of_once_for_each_call(self, token):
        call = {"task": unique_tasks.once.module_path, "args": [1]}
        answer = token("enqueue").post("/jobs/enqueue", {"jobs": [call, call]})
        first, second = answer.json()["jobs"]
        assert first == second
        assert Job.objects.count() == 1


class TestOddTypes:
    """Whatever a task says of its parameters, nothing breaks."""

    def test_whatever_a_type_of_the_project_raises_is_a_misfit(self, enqueue):
        answer = enqueue("exact", {"known": "hunter2"})
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_arguments")
        (misfit,) = answer.json()["errors"]
        assert misfit["problem"] == "refused by its type, with KeyError"

    @pytest.fixture
    def enqueue(self, token, settings):
        caller = token("enqueue")

        def call(name, *args, **kwargs):
            task = getattr(odd_types, name).module_path
            body = {"task": task, "args": list(args), "kwargs": kwargs}
            return caller.post("/jobs", body)

        return call

    @pytest.mark.parametrize(
        ("name", "args", "kwargs"),
        [
            ("partly_known", [1, 2], {}),
            ("told_in_words", [[1]], {}),
            ("with_options", [], {"colour": "red", "copies": 2}),
            ("numbered", [1, 2, 3], {"a": 1.5}),
            ("at_first", [1], {"second": "x"}),
            ("in_context", [1], {}),
        ],
    )
    def test_what_fits_is_taken(self, enqueue, name, args, kwargs):
        answer = enqueue(name, *args, **kwargs)
        assert answer.status_code == 201, answer.content

    @pytest.mark.parametrize(
        ("name", "args", "kwargs", "where"),
        [
            ("partly_known", [1, "2"], {}, "args.1"),
            ("with_options", [], {"copies": "2"}, "kwargs.copies"),
            ("numbered", [1, "2"], {}, "args.1"),
            ("numbered", [], {"a": "b"}, "kwargs.a"),
            ("at_first", ["1"], {}, "args.0"),
            ("imported", ["os.system"], {}, "args.0"),
            ("in_context", ["1"], {}, "args.0"),
            ("sized", [{"width": "a", "height": 1}], {}, "args.0"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, enqueue, name, args, kwargs, where):
        answer = enqueue(name, *args, **kwargs)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_arguments")
        assert answer.json()["errors"][0]["where"].startswith(where)


class TestTypes:
    """Arguments are what the parameters of a task say they are."""

    @pytest.fixture
    def enqueue(self, token):
        caller = token("enqueue", "read_arguments")

        def call(**kwargs):
            body = {"task": tasks.typed.module_path, "kwargs": kwargs}
            return caller.post("/jobs", body)

        return call

    def test_are_made_of_json(self, enqueue):
        when, key = "2026-11-18T12:00:00Z", str(uuid4())
        answer = enqueue(number=1, when=when, key=key, price="1.10", words=["a"])
        assert answer.status_code == 201, answer.content
        from robust_queue.arguments import load_call

        _, given = load_call(Job.objects.get().arguments)
        assert given["key"] == UUID(key)
        assert given["when"].year == 2026
        assert str(given["price"]) == "1.10"

    @pytest.mark.parametrize(
        ("wrong", "where"),
        [
            ({"number": "1"}, "number"),
            ({"number": True}, "number"),
            ({"number": 1.5}, "number"),
            ({"number": None}, "number"),
            ({"number": 1, "when": "noon"}, "when"),
            ({"number": 1, "key": "x"}, "key"),
            ({"number": 1, "words": ["a", 1]}, "words.1"),
            ({"number": 1, "customer": 7}, "customer"),
        ],
    )
    def test_are_told_where_they_do_not_fit(self, enqueue, wrong, where):
        answer = enqueue(**wrong)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_arguments")
        assert [it["where"] for it in answer.json()["errors"]] == [f"kwargs.{where}"]
        assert not Job.objects.exists()
