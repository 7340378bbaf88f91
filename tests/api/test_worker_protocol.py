"""Workers outside: register, ping, dequeue, report, leave."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.utils import timezone

from robust_queue import Unique, external_task, registry
from robust_queue.api import waiting, workers
from robust_queue.lifecycle import enlist, entrust, overdue, report
from robust_queue.lifecycle.cancel import cancel
from robust_queue.lifecycle.overdue import end_overdue
from robust_queue.lifecycle.pause import pause
from robust_queue.lifecycle.pause_task import pause_task
from robust_queue.lifecycle.quiet import quiet_process, stop_process
from robust_queue.lifecycle.tokens import revoke_token
from robust_queue.models import Attempt, Cancellation, ClaimedExecution, Job, Process
from robust_queue.processes.undertaker import prune
from tests.support import rows
from tests.support.invariants import states
from tests.testapp import tasks

from .conftest import Outsider

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("most", "last"), [(3, 429), (None, 200)])
def test_who_is_gone_asks_no_more_often_than_others(render, settings, most, last):
    settings.ROBUST_QUEUE = {"api_requests_per_minute": most}
    worker = Outsider()
    worker.leave()
    moment = timezone.now().replace(second=20, microsecond=0)
    with time_machine.travel(moment, tick=False):
        answers = [worker.caller.post(f"/workers/{worker.id}/ping") for _ in range(4)]
    assert [it.status_code for it in answers] == [200, 200, 200, last]
    assert answers[-1].get("Retry-After") == ("40" if last == 429 else None)


def test_requests_of_a_worker_count_as_those_of_its_token(render, settings):
    settings.ROBUST_QUEUE = {"api_requests_per_minute": 3}
    moment = timezone.now().replace(second=20, microsecond=0)
    with time_machine.travel(moment, tick=False):
        worker = Outsider()
        answers = [worker.caller.post(f"/workers/{worker.id}/ping") for _ in range(3)]
    assert [it.status_code for it in answers] == [200, 200, 429]
    assert answers[-1]["Retry-After"] == "40"


def state_of(result):
    return Job.objects.with_state().get(pk=result.id).state


def grow_old(worker, by):
    Process.objects.filter(pk=worker.id).update(last_heartbeat_at=timezone.now() - by)


def _die(*args):
    raise MemoryError


def _shared(a): ...


@pytest.fixture
def unique_until_start(render):
    policy = Unique(by="arguments", until="started")
    return external_task("unique", queue_name="pdf", unique=policy)


class TestRegister:
    def test_is_not_for_everything_where_nothing_is_said(self, monkeypatch, token):
        """Whoever may serve all queues would be given what only Python can do."""
        known = registry.discover().items()
        ours = {path: task for path, task in known if not registry.is_external(task)}
        monkeypatch.setattr(registry, "_declared", ours)
        tasks.add.enqueue(1)
        answer = token("work:*").post("/workers")
        assert answer.status_code == 422
        assert "name the queues to serve in `queues`" in answer.json()["detail"]
        assert token("work:def*").post("/workers").json()["queues"] == ["def*"]

    def test_takes_an_empty_body(self, render):
        worker = Outsider()
        row = Process.objects.get(pk=worker.id)
        assert row.kind == "External"
        assert worker.facts["queues"] == ["pdf"]
        assert worker.facts["ping_every"] == 60
        assert worker.facts["valid_for"] == 300

    def test_tells_operators_who_it_is(self, render):
        worker = Outsider(name="zürich", version="2.1", hostname="far", pid=7)
        row = Process.objects.get(pk=worker.id)
        assert row.name.startswith("zürich-")
        assert (row.hostname, row.pid) == ("far", 7)
        assert '"version": "2.1"' in row.metadata
        assert worker.facts["secret"] not in row.metadata

    def test_refuses_queues_that_nobody_knows(self, render, token):
        answer = token("work:*").post("/workers", {"queues": ["pfd"]})
        assert answer.status_code == 422
        assert answer.json()["code"] == "unknown_queue"

    def test_refuses_queues_that_the_token_does_not_allow(self, render, token):
        for name in ("default", "nobody-knows"):
            answer = token("work:pdf").post("/workers", {"queues": [name]})
            assert answer.status_code == 403

    def test_takes_a_queue_of_which_only_what_is_scheduled_tells(self, render, token):
        rows.scheduled(rows.job(queue_name="next-week"))
        answer = token("work:*").post("/workers", {"queues": ["next-week"]})
        assert answer.json()["queues"] == ["next-week"]


class TestDequeue:
    def test_gives_a_job_to_one_worker_only(self, render):
        result = render.enqueue(7, paper="A4")
        first, second = Outsider(), Outsider()
        job = first.take()
        assert second.dequeue()["jobs"] == []
        assert job["id"] == result.id
        assert job["task"] == "render-pdf"
        assert (job["args"], job["kwargs"]) == ([7], {"paper": "A4"})
        assert job["attempt"] == 1
        assert state_of(result) == "claimed"

    def test_tells_until_when(self, render):
        render.enqueue()
        worker = Outsider()
        job = worker.take()
        assert job["deadline"] > job["enqueued_at"]
        assert 30 < job["seconds_left"] <= 60
        beat = worker.call(f"/jobs/{job['id']}/heartbeat", {"token": job["token"]})
        assert beat["seconds_left"] <= job["seconds_left"]

    def test_again_under_the_same_name_tells_the_same(self, render):
        render.enqueue(1)
        render.enqueue(2)
        worker, name = Outsider(), str(uuid.uuid4())
        first = worker.dequeue(request_id=name)["jobs"]
        again = worker.dequeue(request_id=name)["jobs"]
        assert again[0].pop("seconds_left") <= first[0].pop("seconds_left")
        assert again == first
        (other,) = worker.dequeue(request_id=str(uuid.uuid4()))["jobs"]
        assert other["args"] == [2]

    def test_again_after_a_crash_at_the_gates_passes_them_as_well(
        self, render, monkeypatch
    ):
        """The server dies between the claim and whatever may hold it back."""
        render.enqueue()
        worker, name = Outsider(), str(uuid.uuid4())
        with monkeypatch.context() as patch:
            patch.setattr(entrust, "_past_the_gates", _die)
            with pytest.raises(MemoryError):
                worker.dequeue(request_id=name)
        assert worker.dequeue(request_id=name)["jobs"] == []
        ClaimedExecution.objects.update(
            created_at=timezone.now() - timedelta(minutes=2)
        )
        worker.ping(jobs=[])
        assert len(worker.dequeue(request_id=name)["jobs"]) == 1

    def test_again_lets_go_of_what_was_kept_until_the_start(
        self, unique_until_start, monkeypatch
    ):
        """The server dies, or waits, between the claim and the begin."""
        first = unique_until_start.enqueue()
        worker, name = Outsider(), str(uuid.uuid4())
        with monkeypatch.context() as patch:
            patch.setattr(entrust, "_begin", _die)
            with pytest.raises(MemoryError):
                worker.dequeue(request_id=name)
        assert unique_until_start.enqueue().id == first.id
        assert len(worker.dequeue(request_id=name)["jobs"]) == 1
        assert unique_until_start.enqueue().id != first.id

    def test_again_tells_the_quiet_what_they_have(self, render):
        render.enqueue()
        worker, name = Outsider(), str(uuid.uuid4())
        jobs = worker.dequeue(request_id=name)["jobs"]
        render.enqueue()
        quiet_process("default", worker.id)
        again = worker.dequeue(request_id=name)["jobs"]
        assert [each["token"] for each in again] == [each["token"] for each in jobs]
        assert worker.dequeue(request_id=str(uuid.uuid4()))["jobs"] == []

    def test_gives_nothing_of_a_paused_queue(self, render):
        render.enqueue()
        pause("default", "pdf")
        assert Outsider().dequeue()["jobs"] == []

    def test_gives_nothing_to_the_quiet(self, render):
        render.enqueue()
        worker = Outsider()
        quiet_process("default", worker.id)
        answer = worker.dequeue()
        assert (answer["jobs"], answer["quiet"]) == ([], True)

    def test_fails_what_comes_too_late(self, late):
        result = late.enqueue()
        Job.objects.update(enqueued_at=timezone.now() - timedelta(minutes=1))
        assert Outsider().dequeue()["jobs"] == []
        assert Job.objects.get(pk=result.id).failed_execution.kind == "expired"

    def test_finds_what_is_ready_behind_what_is_of_no_use(self, late):
        old = [late.enqueue(n) for n in range(20)]
        Job.objects.update(enqueued_at=timezone.now() - timedelta(hours=1))
        good = late.enqueue("good")
        assert Outsider().take(limit=1)["id"] == good.id
        assert {state_of(each) for each in old} == {"failed"}

    def test_finds_what_is_ready_behind_a_task_that_is_paused(self, render):
        for n in range(20):
            render.enqueue(n)
        other = external_task("other", queue_name="pdf").enqueue()
        pause_task("default", "render-pdf")
        assert Outsider().take(limit=1)["id"] == other.id

    def test_goes_on_where_it_takes_longer_to_find_any(self, late, monkeypatch):
        """One who waits does not rest while there is something to be turned away."""
        monkeypatch.setattr(entrust, "PATIENCE", 0)
        monkeypatch.setattr(waiting, "_rest", _die)
        for n in range(5):
            late.enqueue(n)
        Job.objects.update(enqueued_at=timezone.now() - timedelta(hours=1))
        good = late.enqueue("good")
        assert Outsider().take(limit=1, wait=10)["id"] == good.id

    @pytest.mark.parametrize(
        "arguments",
        [
            '{"v":99}',
            "[",
            '{"args":[' + "9" * 5000 + '],"kwargs":{}}',
            # A number that can be read, and has too many digits to be told.
            '{"v":1,"args":[{"$type":"int","hex":"' + "f" * 5000 + '"}],"kwargs":{}}',
        ],
    )
    def test_fails_what_cannot_be_told(self, render, arguments):
        """If it stayed, whoever asks would be answered by an error, for ever."""
        spoiled = render.enqueue()
        Job.objects.update(arguments=arguments)
        good = render.enqueue(1)
        worker, name = Outsider(), str(uuid.uuid4())
        (job,) = worker.dequeue(limit=5, request_id=name)["jobs"]
        assert job["id"] == good.id
        assert state_of(spoiled) == "scheduled"
        attempt = Attempt.objects.get(job_id=spoiled.id)
        assert attempt.exception_class.endswith("DeserializationError")

    def test_fails_what_cannot_be_told_any_more(self, render):
        result = render.enqueue()
        worker, name = Outsider(), str(uuid.uuid4())
        worker.take(request_id=name)
        Job.objects.update(arguments="{}")
        assert worker.dequeue(request_id=name)["jobs"] == []
        assert state_of(result) == "scheduled"

    def test_begins_nothing_that_was_taken_back_at_the_gates(
        self, unique_until_start, monkeypatch
    ):
        """A worker may sign off while it is about to be told of something."""
        result = unique_until_start.enqueue(1)
        worker, past_the_gates = Outsider(), entrust._past_the_gates

        def leave_meanwhile(*args):
            claims = past_the_gates(*args)
            worker.leave()
            return claims

        for name in (None, str(uuid.uuid4())):
            with monkeypatch.context() as patch:
                patch.setattr(entrust, "_past_the_gates", leave_meanwhile)
                assert worker.dequeue(request_id=name)["jobs"] == []
            assert state_of(result) == "ready"
            # It is still to begin, so nobody else may.
            assert unique_until_start.enqueue(1).id == result.id
            worker = Outsider()

    def test_keeps_to_the_rate_of_a_task(self, render):
        """What is too many comes later, and has not been tried."""
        task = external_task("seldom", queue_name="pdf", rate_limit="1/hour")
        first, second = task.enqueue(1), task.enqueue(2)
        worker = Outsider()
        assert [it["id"] for it in worker.dequeue(limit=5)["jobs"]] == [first.id]
        later = Job.objects.with_state().get(pk=second.id)
        assert (later.state, later.scheduled_execution.attempts) == ("scheduled", 0)
        assert worker.dequeue(limit=5)["jobs"] == []

    def test_partitions_take_turns(self, render, settings):
        by_first = {"pdf": {"partition_by": "a"}}
        settings.ROBUST_QUEUE = {"queues": by_first}
        task = external_task("shared", queue_name="pdf", signature=_shared)
        for partition in ("big", "big", "big", "small"):
            task.enqueue(partition)
        worker = Outsider()
        served = [worker.take(limit=1)["args"][0] for _ in range(4)]
        assert served.index("small") == 1

    def test_waits_no_longer_than_allowed(self, render, settings):
        settings.ROBUST_QUEUE = {"api_longest_wait": 0.2}
        begun = timezone.now()
        assert Outsider().dequeue(wait=3000)["jobs"] == []
        assert timezone.now() - begun < timedelta(seconds=5)

    def test_gives_nothing_once_the_token_is_revoked(self, render, monkeypatch):
        worker = Outsider()

        def rest(*args):
            revoke_token("default", worker.token.pk)
            render.enqueue()

        monkeypatch.setattr(waiting, "_rest", rest)
        assert worker.dequeue(wait=5)["jobs"] == []

    def test_tells_of_no_more_than_goes_into_one_answer(self, render, monkeypatch):
        """What is left over has not been tried, and is told of next."""
        monkeypatch.setattr(entrust, "MOST_LETTERS", 500)
        large = [render.enqueue("x" * 200) for _ in range(4)]
        huge = render.enqueue("x" * 600)
        worker, told = Outsider(), []
        while jobs := worker.dequeue(limit=5)["jobs"]:
            told.append([each["id"] for each in jobs])
            assert {each["attempt"] for each in jobs} == {1}
        first, second, third, fourth, last = (each.id for each in [*large, huge])
        assert told == [[first, second], [third, fourth], [last]]

    def test_serves_python_tasks_for_who_asks(self):
        tasks.add.enqueue(1, b=2)
        job = Outsider(queues=["default"]).take()
        assert job["task"] == "tests.testapp.tasks.add"


class TestOutcome:
    def test_succeeded_with_a_result(self, render):
        result = render.enqueue()
        worker = Outsider()
        said = worker.report(worker.take(), "succeeded", result={"pages": 3})
        assert said == {"job": result.id, "recorded": True, "state": "finished"}
        result.refresh()
        assert result.return_value == {"pages": 3}
        assert result.worker_ids == [worker.facts["name"]]

    def test_failed_is_tried_again_as_declared(self, render):
        result = render.enqueue()
        worker = Outsider()
        error = {"type": "TypeError", "message": "no ink", "traceback": "at print.js"}
        said = worker.report(worker.take(), "failed", error=error)
        assert (said["recorded"], said["state"]) == (True, "scheduled")
        attempt = Attempt.objects.get(job_id=result.id)
        assert attempt.exception_class == "TypeError"
        assert attempt.message == "no ink"
        assert attempt.traceback == "at print.js"

    def test_failed_with_words_that_look_like_a_log(self, render, caplog):
        render.enqueue()
        worker = Outsider()
        error = {"type": "E\nINFO x", "message": "a\x1b[2J\r\nINFO all is well"}
        worker.report(worker.take(), "failed", error=error)
        assert "all is well" in caplog.text
        assert not [it for it in caplog.messages if {"\n", "\r", "\x1b"} & {*it}]
        assert Attempt.objects.get().message == error["message"], "as it was said"

    def test_failed_for_good(self, render):
        render.enqueue()
        worker = Outsider()
        said = worker.report(worker.take(), "failed", final=True)
        assert said["state"] == "failed"

    def test_timed_out_is_flagged_and_not_tried_again(self, render):
        result = render.enqueue()
        worker = Outsider()
        assert worker.report(worker.take(), "timed_out")["state"] == "failed"
        assert Job.objects.get(pk=result.id).failed_execution.kind == "timed_out"

    def test_released_does_not_count(self, render):
        result = render.enqueue()
        worker = Outsider()
        job = worker.take()
        assert worker.report(job, "released")["recorded"]
        assert state_of(result) == "ready"
        assert worker.take()["attempt"] == 1

    @pytest.mark.parametrize(
        "outcome", ["succeeded", "failed", "timed_out", "cancelled", "released"]
    )
    def test_again_changes_nothing(self, render, outcome):
        result = render.enqueue()
        worker = Outsider()
        job = worker.take()
        first = worker.report(job, outcome)
        again = worker.report(job, outcome)
        assert again == first
        assert first["recorded"]
        assert Attempt.objects.filter(job_id=result.id).count() <= 1

    def test_twice_in_one_batch_counts_once(self, render):
        result = render.enqueue()
        worker = Outsider()
        job = worker.take()
        both = [
            {"job": job["id"], "token": job["token"], "outcome": outcome}
            for outcome in ("succeeded", "failed")
        ]
        worker.call("/outcomes", {"outcomes": both})
        assert states() == {uuid.UUID(result.id): "finished"}

    def test_of_two_attempts_in_one_batch_each_stands_for_itself(self, render):
        """The report of an attempt that was lost comes before that of the next one."""
        result = render.enqueue()
        worker = Outsider()
        earlier = worker.take()
        ClaimedExecution.objects.update(
            created_at=timezone.now() - timedelta(minutes=2)
        )
        worker.ping(jobs=[])
        later = worker.take()
        told = [(earlier, "failed"), (later, "succeeded"), (earlier, "timed_out")]
        outcomes = [
            {"job": job["id"], "token": job["token"], "outcome": outcome}
            for job, outcome in told
        ]
        answer = worker.call("/outcomes", {"outcomes": outcomes})["outcomes"]
        assert [each["recorded"] for each in answer] == [False, True, False]
        assert {each["state"] for each in answer} == {"finished"}
        assert state_of(result) == "finished"

    def test_of_what_others_have_ended_is_not_recorded(self, render):
        result = render.enqueue()
        worker = Outsider()
        job = worker.take()
        with time_machine.travel(timezone.now() + timedelta(minutes=2), tick=True):
            grow_old(worker, timedelta())
            assert end_overdue("default") == 1
            for outcome in ("succeeded", "failed", "cancelled"):
                assert not worker.report(job, outcome)["recorded"]
            # That is what it has ended as.
            assert worker.report(job, "timed_out")["recorded"]
        assert state_of(result) == "failed"

    def test_again_is_not_about_others_of_the_same_batch(self, render, monkeypatch):
        """They were begun by the same worker, in the same moment."""
        render.enqueue(1), external_task("quick", queue_name="pdf").enqueue(2)
        worker = Outsider()
        late, good = worker.dequeue(limit=2)["jobs"]
        assert late["token"] == good["token"]
        assert worker.report(good, "succeeded")["recorded"]
        with time_machine.travel(timezone.now() + timedelta(minutes=2), tick=True):
            grow_old(worker, timedelta())
            assert end_overdue("default") == 1
        outcomes = [
            {"job": job["id"], "token": job["token"], "outcome": "succeeded"}
            for job in (late, good)
        ]
        answers = worker.call("/outcomes", {"outcomes": outcomes})["outcomes"]
        assert [each["recorded"] for each in answers] == [False, True]

    def test_of_a_worker_that_was_struck_off_meanwhile_is_not_recorded(
        self, render, monkeypatch
    ):
        """It is taken for dead between its call and its report."""
        result = render.enqueue()
        worker = Outsider()
        job, held = worker.take(), report._held

        def struck_off(*args):
            grow_old(worker, timedelta(hours=1))
            prune("default", threshold=timedelta(minutes=5), spare=[])
            return held(*args)

        monkeypatch.setattr(report, "_held", struck_off)
        assert not worker.report(job, "failed")["recorded"]
        assert state_of(result) == "scheduled"

    def test_sent_twice_at_once_is_announced_once(self, render, settings, monkeypatch):
        """Of a job that leaves no trace nobody can tell who has recorded it."""
        settings.ROBUST_QUEUE = {"preserve_finished_jobs": False}
        render.enqueue()
        worker = Outsider()
        job, held = worker.take(), report._held
        counted, answers = [], []
        monkeypatch.setattr(workers, "count", lambda _, ended: counted.extend(ended))

        def overtaken(*args):
            found = held(*args)
            if not answers:
                answers.append(None)
                answers.append(worker.report(job, "succeeded"))
            return found

        monkeypatch.setattr(report, "_held", overtaken)
        answers.append(worker.report(job, "succeeded"))
        assert [each["recorded"] for each in answers[1:]] == [True, True]
        assert len(counted) == 1

    def test_does_not_say_when_it_began(self, render):
        result = render.enqueue()
        worker = Outsider()
        job = worker.take()
        token, attempt, _ = job["token"].split(".")
        for moment in ("0", "99999999999999999"):
            forged = {**job, "token": f"{token}.{attempt}.{moment}"}
            assert not worker.report(forged, "failed")["recorded"]
        assert state_of(result) == "claimed"

    def test_of_an_earlier_claim_does_not_touch_the_next_one(self, render):
        render.enqueue()
        worker, name = Outsider(), str(uuid.uuid4())
        first = worker.take(request_id=name)
        worker.report(first, "released")
        second = worker.take(request_id=name)
        assert second["id"] == first["id"]
        worker.report(first, "released")
        assert worker.report(second, "succeeded")["state"] == "finished"

    def test_of_a_claim_that_was_lost_changes_nothing_and_says_so(self, render):
        result = render.enqueue()
        first, second = Outsider(), Outsider()
        lost = first.take()
        first.report(lost, "released")
        held = second.take()
        said = first.report(lost, "succeeded")
        assert said == {"job": result.id, "recorded": False, "state": "claimed"}
        assert second.report(held, "succeeded")["recorded"]
        assert not first.report(lost, "succeeded")["recorded"]

    def test_too_large_a_result_fails(self, render, settings):
        settings.ROBUST_QUEUE = {"max_result_size": 10}
        render.enqueue()
        worker = Outsider()
        said = worker.report(worker.take(), "succeeded", result="x" * 100)
        assert said == {**said, "recorded": True, "state": "scheduled"}


class TestDeath:
    def test_of_a_silent_worker_its_jobs_run_again(self, render):
        result = render.enqueue()
        worker = Outsider()
        job = worker.take()
        grow_old(worker, timedelta(hours=1))
        assert prune("default", threshold=timedelta(minutes=5), spare=[]) == 1
        assert state_of(result) == "scheduled"
        pulse = worker.ping()
        assert pulse.pop("now")
        assert pulse == {
            "alive": False,
            "cancelled": [],
            "quiet": False,
            "stop": False,
        }
        assert worker.dequeue()["alive"] is False
        said = worker.caller.post(
            f"/workers/{worker.id}/outcomes",
            {
                "outcomes": [
                    {"job": job["id"], "token": job["token"], "outcome": "succeeded"}
                ]
            },
        ).json()
        assert said["alive"] is False
        assert said["outcomes"][0]["recorded"] is False
        assert state_of(result) == "scheduled"

    def test_a_python_task_runs_again_too(self):
        result = tasks.add.enqueue(1)
        worker = Outsider(queues=["default"])
        worker.take()
        grow_old(worker, timedelta(hours=1))
        prune("default", threshold=timedelta(minutes=5), spare=[])
        assert state_of(result) == "scheduled"

    def test_leaving_gives_everything_back(self, render):
        result = render.enqueue()
        worker = Outsider()
        worker.take()
        assert worker.leave() == {"released": 1}
        assert state_of(result) == "ready"
        assert worker.leave() == {"released": 0}

    def test_leaving_is_done_as_a_whole_or_not_at_all(self, render, monkeypatch):
        """Jobs that belong to nobody would be taken for interrupted ones."""
        render.enqueue()
        worker = Outsider()
        worker.take()
        with monkeypatch.context() as patch:
            patch.setattr(enlist, "release", _die)
            with pytest.raises(MemoryError):
                worker.leave()
        assert Process.objects.filter(pk=worker.id).exists()
        assert worker.leave() == {"released": 1}

    def test_what_a_worker_never_heard_of_goes_back(self, render):
        result = render.enqueue()
        worker = Outsider()
        worker.take()
        worker.ping(jobs=[])
        assert state_of(result) == "claimed"
        ClaimedExecution.objects.update(
            created_at=timezone.now() - timedelta(minutes=2)
        )
        worker.ping(jobs=[str(result.id)])
        assert state_of(result) == "claimed"
        worker.ping(jobs=[])
        assert state_of(result) == "ready"

    def test_who_takes_too_long_is_found_behind_those_who_may(
        self, render, monkeypatch
    ):
        monkeypatch.setattr(overdue, "BATCH", 2)
        others = Outsider(queues=["default"])
        for _ in range(5):
            tasks.add.enqueue(1)
        assert len(others.dequeue(limit=5)["jobs"]) == 5
        render.enqueue()
        Outsider().take()
        ClaimedExecution.objects.update(
            created_at=timezone.now() - timedelta(minutes=2)
        )
        assert end_overdue("default") == 1

    def test_who_has_been_silent_since_is_left_to_who_strikes_it_off(self, render):
        """Perhaps it is dead: an interrupted job runs again, whatever its timeout."""
        result = render.enqueue()
        worker = Outsider()
        worker.take()
        ClaimedExecution.objects.update(
            created_at=timezone.now() - timedelta(hours=1, seconds=10)
        )
        # Behind the sixty seconds that there were, but not behind the grace of five.
        grow_old(worker, timedelta(hours=1) - timedelta(seconds=52))
        assert end_overdue("default") == 0
        grow_old(worker, timedelta(hours=1))
        assert end_overdue("default") == 0
        assert prune("default", threshold=timedelta(minutes=5), spare=[]) == 1
        assert state_of(result) == "scheduled"
        assert Attempt.objects.get(job_id=result.id).kind == "crashed"

    def test_who_was_heard_of_since_is_not(self, render):
        result = render.enqueue()
        worker = Outsider()
        worker.take()
        ClaimedExecution.objects.update(
            created_at=timezone.now() - timedelta(hours=1, seconds=10)
        )
        grow_old(worker, timedelta(hours=1) - timedelta(seconds=58))
        assert end_overdue("default") == 1
        assert state_of(result) == "failed"

    def test_who_takes_too_long_is_timed_out(self, render):
        result = render.enqueue()
        worker = Outsider()
        job = worker.take()
        assert end_overdue("default") == 0
        ClaimedExecution.objects.update(
            created_at=timezone.now() - timedelta(minutes=2)
        )
        assert end_overdue("default") == 1
        assert Job.objects.get(pk=result.id).failed_execution.kind == "timed_out"
        assert not worker.report(job, "succeeded")["recorded"]


class TestWallTime:
    """Without USE_TZ, in the nights in which clocks are turned.

    Travels go by the number of seconds: with a zone they would change that of all.
    """

    @pytest.fixture(autouse=True)
    def berlin(self, settings):
        settings.USE_TZ, settings.TIME_ZONE = False, "Europe/Berlin"

    def test_nothing_is_late_because_an_hour_was_left_out(self, render):
        # At 01:59:50. Twenty seconds later it is 03:00:10.
        now = datetime(2026, 3, 29, 0, 59, 50, tzinfo=UTC)
        with time_machine.travel(now.timestamp()) as clock:
            result = render.enqueue()
            worker = Outsider()
            worker.take()
            clock.shift(20)
            assert end_overdue("default") == 0
            worker.ping(jobs=[])
            assert state_of(result) == "claimed"
            clock.shift(60)
            assert end_overdue("default") == 1

    def test_the_deadline_of_an_hour_that_comes_twice_is_to_come(self, render):
        # The second 02:30.
        now = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
        with time_machine.travel(now.timestamp(), tick=False):
            render.enqueue()
            worker = Outsider()
            job = worker.take()
        assert datetime.fromisoformat(job["deadline"]) == now + timedelta(minutes=1)


class TestPing:
    def test_tells_of_cancellations(self, render):
        result = render.enqueue()
        worker = Outsider()
        job = worker.take()
        assert worker.ping()["cancelled"] == []
        assert cancel("default", result.id)
        assert worker.ping()["cancelled"] == [result.id]
        beat = worker.call(f"/jobs/{job['id']}/heartbeat", {"token": job["token"]})
        assert (beat["held"], beat["cancelled"]) == (True, True)
        assert worker.report(job, "cancelled")["state"] == "failed"
        assert not Cancellation.objects.exists()

    def test_that_was_long_on_its_way_takes_nothing_back(self, render):
        """What was given out behind it stands in no list that was made before."""
        result = render.enqueue()
        worker = Outsider()
        worker.take()
        since = timezone.now() - timedelta(minutes=2)
        ClaimedExecution.objects.update(created_at=since)
        before, behind = (since + timedelta(seconds=it) for it in (59, 61))
        worker.ping(jobs=[], as_of=before.isoformat())
        assert state_of(result) == "claimed"
        worker.ping(jobs=[], as_of=behind.isoformat())
        assert state_of(result) == "ready"

    @pytest.mark.parametrize(
        "as_of", ["0001-01-01T00:00:00Z", "0001-01-01T14:00:00+14:00"]
    )
    def test_of_the_first_moment_of_all_takes_nothing_back(self, render, as_of):
        """Programs in some languages send that where they have heard nothing yet."""
        result = render.enqueue()
        worker = Outsider()
        worker.take()
        ClaimedExecution.objects.update(created_at=timezone.now() - timedelta(hours=1))
        assert worker.ping(jobs=[], as_of=as_of)["alive"]
        assert state_of(result) == "claimed"

    def test_of_tomorrow_takes_back_no_more_than_one_of_now(self, render):
        result = render.enqueue()
        worker = Outsider()
        worker.take()
        tomorrow = timezone.now() + timedelta(days=1)
        pulse = worker.ping(jobs=[], as_of=tomorrow.isoformat())
        assert state_of(result) == "claimed"
        assert datetime.fromisoformat(pulse["now"]) <= timezone.now()

    def test_tells_that_it_is_to_stop(self, render):
        worker = Outsider()
        stop_process("default", worker.id)
        assert worker.ping()["stop"] is True

    def test_takes_the_secret_of_that_very_worker(self, render):
        first, second = Outsider(), Outsider()
        answer = first.caller.post(f"/workers/{second.id}/ping")
        assert answer.status_code == 401

    def test_goes_on_where_the_key_of_the_project_was_changed(self, render, settings):
        worker = Outsider()
        settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
        settings.SECRET_KEY = "another"  # noqa: S105
        assert worker.ping()["alive"]
        settings.SECRET_KEY_FALLBACKS = []
        answer = worker.caller.post(f"/workers/{worker.id}/ping")
        assert answer.status_code == 401

    def test_ends_with_the_token(self, render):
        worker = Outsider()
        worker.token.revoked_at = timezone.now()
        worker.token.save()
        answer = worker.caller.post(f"/workers/{worker.id}/dequeue")
        assert answer.status_code == 401
