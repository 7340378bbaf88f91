"""Jobs over the API: found, told of, counted, streamed."""

import json
from datetime import timedelta
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.core.signals import request_finished
from django.test import AsyncClient
from django.utils import timezone

from robust_queue.admin.jobs_filter import FilterForm
from robust_queue.api import lasting
from robust_queue.api.job_schemas import JobFilter
from robust_queue.api.problems import Problem
from robust_queue.arguments import dump_call
from robust_queue.lifecycle import (
    search_conditions,
    search_counts,
    search_pages,
    search_walk,
)
from robust_queue.models import ApiToken
from tests.support import rows
from tests.support.statements import statements
from tests.testapp import tasks

from .conftest import ROOT

pytestmark = pytest.mark.django_db

PENDING = {"scheduled", "ready", "blocked", "claimed"}


def everything():
    """A job in each state, by its state."""
    made = {
        "scheduled": rows.scheduled(),
        "ready": rows.ready(),
        "blocked": rows.blocked(),
        "claimed": rows.claimed(),
        "failed": rows.failed(),
        "finished": rows.finished(),
    }
    return {state: row.job for state, row in made.items()}


def ids(answer):
    assert answer.status_code == 200, answer.content
    return [job["id"] for job in answer.json()["jobs"]]


@pytest.fixture
def reader(token):
    return token("read")


class TestList:
    def test_tells_where_each_stands(self, reader):
        made = everything()
        told = reader.get("/jobs").json()["jobs"]
        assert {job["id"]: job["state"] for job in told} == {
            str(job.pk): state for state, job in made.items()
        }

    @pytest.mark.parametrize("state", [*PENDING, "failed", "finished"])
    def test_of_a_state(self, reader, state):
        made = everything()
        assert ids(reader.get(f"/jobs?state={state}")) == [str(made[state].pk)]

    def test_of_pending_jobs_the_newest_first_over_all_their_tables(self, reader):
        made = [everything() for _ in range(3)]
        wanted = [str(each[it].pk) for each in made for it in each if it in PENDING]
        assert ids(reader.get("/jobs?state=pending")) == sorted(wanted)[::-1]

    @pytest.mark.parametrize("order", ["newest", "oldest"])
    @pytest.mark.parametrize("state", ["", "state=pending&", "queue=default&"])
    def test_turns_pages_without_losing_or_repeating_any(self, reader, order, state):
        for _ in range(3):
            everything()
        path = f"/jobs?{state}order={order}"
        whole = ids(reader.get(f"{path}&limit=500"))
        found, place = [], ""
        while place is not None:
            page = reader.get(f"{path}&limit=4{place and f'&behind={place}'}").json()
            found += [job["id"] for job in page["jobs"]]
            place = page["next"]
        assert found == whole
        assert len(whole) == (12 if "pending" in state else 18)
        assert whole == sorted(whole, reverse=order == "newest")

    def test_looks_a_stretch_at_a_time_where_no_index_leads(self, reader, monkeypatch):
        monkeypatch.setattr(search_walk, "STRETCH", 2)
        wanted = rows.finished(of=rows.job(queue_name="rare")).job
        for _ in range(5):
            rows.finished()
        path, place, pages = "/jobs?state=finished&queue=rare", "", []
        assert ids(reader.get(path)) == [str(wanted.pk)]
        # Not for ever.
        monkeypatch.setattr(search_pages, "PATIENCE", 0)
        while place is not None:
            page = reader.get(f"{path}{place and f'&behind={place}'}").json()
            pages.append([job["id"] for job in page["jobs"]])
            place = page["next"]
        assert pages == [[], [], [str(wanted.pk)]]

    def test_is_as_dear_with_many_jobs_as_with_few(self, reader):
        everything()
        reader.get("/jobs?state=pending")
        with statements() as few:
            reader.get("/jobs?state=pending")
        for _ in range(20):
            everything()
        with statements() as many:
            reader.get("/jobs?state=pending")
        assert len(many) == len(few) <= 6, "the token, four tables, the jobs"

    @pytest.mark.parametrize(
        ("query", "makes"),
        [
            (
                "task=other.task",
                lambda: rows.ready(of=rows.job(task_path="other.task")),
            ),
            ("queue=rare", lambda: rows.ready(of=rows.job(queue_name="rare"))),
            ("priority=-7", lambda: rows.ready(of=rows.job(priority=-7))),
            ("error=some.Mishap", lambda: rows.failed(exception_class="some.Mishap")),
            ("kind=timed_out", lambda: rows.failed(kind="timed_out")),
            ("worker=bee", lambda: rows.finished(worker_id="bee")),
            ("key=k", lambda: rows.blocked(of=rows.job(concurrency_key="k"))),
            ("text={}", rows.ready),
        ],
    )
    def test_by_everything_that_the_admin_knows(self, reader, query, makes):
        everything()
        wanted = str(makes().job.pk)
        assert ids(reader.get(f"/jobs?{query.format(wanted)}")) == [wanted]

    def test_by_no_less_than_in_the_admin(self):
        assert {*FilterForm.base_fields} <= {*JobFilter.model_fields}

    def test_by_when_they_were_over(self, reader):
        now = timezone.now()
        # To come: an id is as old as its job, which ends behind that.
        days = {n: rows.finished(finished_at=now + timedelta(days=n)) for n in range(3)}
        rows.ready()
        begin, end = ((now + timedelta(hours=n)).isoformat() for n in (12, 36))
        query = f"finished_from={begin}&finished_until={end}".replace("+", "%2B")
        assert ids(reader.get(f"/jobs?{query}")) == [str(days[1].job.pk)]

    def test_by_moments(self, reader):
        old = rows.ready(of=rows.job(enqueued_at=timezone.now() - timedelta(days=2)))
        # An id is as old as its job.
        day = (timezone.now() - timedelta(days=1)).isoformat().replace("+", "%2B")
        assert ids(reader.get(f"/jobs?enqueued_until={day}")) == []
        assert str(old.job.pk) not in ids(reader.get(f"/jobs?enqueued_from={day}"))

    def test_by_moments_is_looked_for_a_stretch_at_a_time(self, reader, monkeypatch):
        """Ids tell when a job was enqueued, but for an hour in which there are many."""
        monkeypatch.setattr(search_walk, "STRETCH", 2)
        monkeypatch.setattr(search_pages, "PATIENCE", 0)
        for _ in range(5):
            rows.ready()
        earlier = (timezone.now() - timedelta(minutes=1)).isoformat()
        until = earlier.replace("+", "%2B")
        told = reader.get(f"/jobs?state=ready&enqueued_until={until}").json()
        assert told["jobs"] == []
        assert told["next"] is not None

    def test_by_a_recurring_task_with_very_many_runs(self, reader, monkeypatch):
        monkeypatch.setattr(search_conditions, "FEW_RUNS", 2)
        now = timezone.now()
        runs = [rows.failed().job.pk for _ in range(5)]
        for n, job in enumerate(runs):
            run_at = now - timedelta(minutes=n)
            rows.recurring_execution(task_key="nightly", job_id=job, run_at=run_at)
        rows.failed()
        found = ids(reader.get("/jobs?recurring=nightly&state=failed"))
        assert found == [str(each) for each in runs][::-1]
        for path in ("count?", "count?state=failed&", "count?queue=default&"):
            told = reader.get(f"/jobs/{path}recurring=nightly").json()
            assert (told["count"], told["is_complete"]) == (5, True)
        lines = b"".join(reader.get("/jobs/stream?recurring=nightly")).splitlines()
        assert [json.loads(line)["id"] for line in lines] == found[::-1]

    @pytest.mark.parametrize(
        "query",
        [
            "state=done",
            "stat=failed",
            "priority=high",
            "limit=0",
            "limit=501",
            "behind=first",
            "kind=none",
            "enqueued_from=yesterday",
            "enqueued_from=2026-01-01T00:00:00",
            "enqueued_from=0001-01-01T00:00:00Z",
            "queue=%00",
            "text=%00",
        ],
    )
    def test_refuses_what_makes_no_sense(self, reader, query):
        answer = reader.get(f"/jobs?{query}")
        assert answer.status_code == 422
        assert answer["Content-Type"] == "application/problem+json"


class TestContents:
    """Whoever may read does not see what jobs are about."""

    @pytest.fixture
    def job(self):
        job = rows.job(
            task_path=tasks.note.module_path,
            arguments=dump_call([1], {"password": "hunter2"}),
        )
        rows.failed(of=job, message="hunter2 was wrong", traceback="File hunter2")
        return job

    @pytest.mark.parametrize(
        "path", ["/jobs?arguments=true", "/jobs/{}", "/jobs/stream?arguments=true"]
    )
    def test_are_hidden_from_who_may_only_read(self, token, reader, job, path):
        path = path.format(job.pk)
        assert b"hunter2" not in b"".join(reader.get(path))
        assert b"hunter2" in b"".join(token("read_arguments").get(path))

    def test_that_are_hidden_are_said_to_be(self, reader, job):
        told = reader.get(f"/jobs/{job.pk}").json()
        assert told["contents"] == "hidden"
        assert told["args"] is None
        assert told["error"]["type"]

    def test_are_told_to_who_may_see_them(self, token, job):
        told = token("read_arguments").get(f"/jobs/{job.pk}").json()
        assert (told["args"], told["kwargs"]) == ([1], {"password": "hunter2"})
        assert told["error"]["message"] == "hunter2 was wrong"

    def test_cannot_be_guessed_by_searching(self, token, reader, job):
        assert ids(reader.get("/jobs?text=hunter2")) == []
        assert ids(token("read_arguments").get("/jobs?text=hunter2")) == [str(job.pk)]


class TestOne:
    def test_tells_all_of_it(self, token):
        row = rows.finished(result='{"pages": 3}', attempts=2)
        rows.attempt(of=row.job, attempts=1, message="no ink")
        told = token("read_arguments").get(f"/jobs/{row.job.pk}").json()
        assert told["state"] == "finished"
        assert told["result"] == {"pages": 3}
        assert [it["number"] for it in told["attempts_made"]] == [1, 2]
        assert told["attempts_made"][0]["error"]["message"] == "no ink"
        assert [it["what"] for it in told["history"]] == [
            *("enqueued", "started", "error", "started", "succeeded", "finished")
        ]

    def test_tells_why_it_waits(self, reader):
        rows.ready()
        (told,) = reader.get("/jobs").json()["jobs"]
        reasons = reader.get(f"/jobs/{told['id']}").json()["reasons"]
        assert reasons[0] == "No worker is alive."

    def test_that_is_not_there(self, reader):
        answer = reader.get(f"/jobs/{uuid4()}")
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_job")


class TestCount:
    def test_all(self, reader):
        everything()
        told = {"count": 6, "is_complete": True, "next": None}
        assert reader.get("/jobs/count").json() == told
        assert reader.get("/jobs/count?state=pending").json()["count"] == 4
        assert reader.get("/jobs/count?state=failed").json()["count"] == 1

    @pytest.mark.parametrize("query", ["queue=rare", "queue=rare&state=ready"])
    def test_by_a_filter(self, reader, query):
        everything()
        rows.ready(of=rows.job(queue_name="rare"))
        assert reader.get(f"/jobs/count?{query}").json()["count"] == 1

    def test_in_groups(self, reader):
        everything()
        rows.failed(of=rows.job(queue_name="rare", task_path="odd"))
        states = reader.get("/jobs/counts").json()["groups"]
        assert {it["name"]: it["count"] for it in states} == {
            **dict.fromkeys([*PENDING, "finished"], 1),
            "failed": 2,
        }
        queues = reader.get("/jobs/counts?by=queue").json()["groups"]
        assert queues == [
            {"name": "default", "count": 6},
            {"name": "rare", "count": 1},
        ]
        failed = reader.get("/jobs/counts?by=task&state=failed").json()["groups"]
        assert {"name": "odd", "count": 1} in failed

    @pytest.mark.parametrize("path", ["count?", "counts?by=task&", "counts?by=state&"])
    @pytest.mark.parametrize("query", ["", "queue=default", "state=pending"])
    def test_goes_on_where_the_time_was_up(self, reader, monkeypatch, path, query):
        monkeypatch.setattr(search_counts, "STRETCH", 2)
        for _ in range(3):
            everything()
        whole = _sum(reader.get(f"/jobs/{path}{query}").json())
        monkeypatch.setattr(search_counts, "PATIENCE", 0.0)
        total, place, asked = 0, "", 0
        while place is not None:
            more = place and f"&behind={place}"
            told = reader.get(f"/jobs/{path}{query}{more}").json()
            assert told["is_complete"] is (told["next"] is None)
            total, place, asked = total + _sum(told), told["next"], asked + 1
        assert total == whole == (12 if "pending" in query else 18)

    @pytest.mark.parametrize("place", ["x", "ready.x", "ready.", "."])
    def test_refuses_places_that_nobody_has_told(self, reader, place):
        answer = reader.get(f"/jobs/count?state=failed&behind={place}")
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_place")
        assert "`next` of an earlier answer" in answer.json()["detail"]


def _sum(told):
    if "count" in told:
        return told["count"]
    return sum(each["count"] for each in told["groups"])


class TestStream:
    @pytest.mark.parametrize("query", ["", "?state=pending", "?order=newest"])
    def test_tells_all_of_them_line_by_line(self, reader, query, monkeypatch):
        monkeypatch.setattr("robust_queue.api.jobs.BLOCK", 4)
        for _ in range(3):
            everything()
        answer = reader.get(f"/jobs/stream{query}")
        assert answer["Content-Type"] == "application/x-ndjson"
        lines = b"".join(answer.streaming_content).splitlines()
        found = [json.loads(line)["id"] for line in lines]
        assert len(found) == len(set(found)) == (12 if "pending" in query else 18)
        assert found == sorted(found, reverse="newest" in query)

    def test_has_the_arguments_for_who_asks(self, token):
        rows.ready()
        (line,) = b"".join(
            token("read_arguments").get("/jobs/stream?arguments=true")
        ).splitlines()
        assert json.loads(line)["args"] is not None

    @pytest.mark.parametrize(("silence", "is_heard"), [(0.0, True), (3600.0, False)])
    def test_is_never_silent_for_long(self, reader, monkeypatch, silence, is_heard):
        monkeypatch.setattr(search_walk, "STRETCH", 2)
        monkeypatch.setattr(lasting, "LONGEST_SILENCE", silence)
        path = "/jobs/stream?queue=rare"
        nothing = b"".join(reader.get(path))
        for _ in range(6):
            rows.finished()
        rare = rows.finished(of=rows.job(queue_name="rare")).job
        body = b"".join(reader.get(path))
        assert nothing == (b"\n" if is_heard else b"")
        assert body.startswith(b"\n") is is_heard
        assert json.loads(body)["id"] == str(rare.pk)

    def test_breaks_off_once_the_token_is_revoked(self, reader, short):
        blocks = reader.get("/jobs/stream").streaming_content
        assert next(blocks)
        ApiToken.objects.update(revoked_at=timezone.now())
        with pytest.raises(Problem, match="revoked"):
            next(blocks)

    def test_breaks_off_under_asgi_as_well(self, reader, short):
        async def read():
            headers = {"Authorization": f"Bearer {reader.bearer}"}
            answer = await AsyncClient().get(f"{ROOT}/jobs/stream", headers=headers)
            blocks = aiter(answer.streaming_content)
            assert await anext(blocks)
            await ApiToken.objects.aupdate(revoked_at=timezone.now())
            with pytest.raises(Problem, match="revoked"):
                await anext(blocks)

        async_to_sync(read)()

    def test_looks_at_the_token_now_and_then(self, reader, short, monkeypatch):
        monkeypatch.setattr(lasting, "EVERY", 3600.0)
        with statements() as made:
            lines = b"".join(reader.get("/jobs/stream")).splitlines()
        assert len(lines) == 6
        reads = [it for it in made if it.startswith("SELECT") and "api_tokens" in it]
        assert len(reads) == 1

    @pytest.fixture
    def short(self, monkeypatch):
        """Blocks of two jobs, and a look behind each."""
        monkeypatch.setattr("robust_queue.api.jobs.BLOCK", 2)
        monkeypatch.setattr(lasting, "EVERY", 0.0)
        return everything()

    def test_is_only_asked_about_without_the_request_being_over(self, reader):
        rows.ready()
        ends = []
        request_finished.connect(over := lambda **_: ends.append(1), weak=False)
        try:
            answer = reader.request("HEAD", "/jobs/stream")
        finally:
            request_finished.disconnect(over)
        assert (answer.status_code, b"".join(answer)) == (200, b"")
        assert answer["Content-Type"] == "application/x-ndjson"
        assert len(ends) == 1
