"""The Python client, over a real socket to a real server."""

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
import pytest
from django.utils import timezone

from robust_queue.client import (
    ApiError,
    Cancelled,
    Client,
    Discard,
    Retry,
    TimedOut,
    UnreachableError,
    Worker,
    bench,
)
from robust_queue.client.bench import Bench
from robust_queue.client.patience import Patience
from robust_queue.client.told import Pulse
from robust_queue.lifecycle.cancel import cancel
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.quiet import quiet_process, stop_process
from robust_queue.models import ApiToken, Attempt, FailedExecution, Job, Process
from tests.support.invariants import state_of, states
from tests.support.lossy_proxy import lossy_proxy
from tests.support.outside import (
    ApiServer,
    InThread,
    Outside,
    age_claims,
    api_server,
    client,
    line,
    make_cancelled,
    make_late,
    new_token,
    outside_tasks,
    strike_off,
)
from tests.support.supervisors import until

__all__ = ["api_server", "client", "line", "outside_tasks"]

IN_A_CENTURY = "Tue, 19 Nov 2126 09:00:00 GMT"
QUICK = {"queues": ["outside"], "wait": 2, "ping_every": 0.2}


@pytest.fixture
def working(client):
    """Runs workers in threads, which end with the test."""
    running = []

    def start(*handlers, **how):
        worker = Worker(client, **{**QUICK, **how})
        for name, handler in handlers:
            worker.task(name)(handler)
        running.append(InThread(worker))
        return running[-1]

    yield start
    for each in running:
        each.stop()


def until_state(result, state):
    until(lambda: state_of(result) == state, f"it is {state}")


def add(job, first, second):
    return first + second


class TestCalls:
    def test_are_the_protocol(self, client, outside_tasks):
        result = outside_tasks.add.enqueue(1, second=2)
        worker = client.register(name="by hand")
        pulse, (job,) = worker.dequeue()
        assert pulse.alive
        assert (job.id, job.args, job.kwargs) == (result.id, [1], {"second": 2})
        assert worker.heartbeat(job.id, job.token).held
        assert worker.ping([job.id], as_of=pulse.now).cancelled == []
        told = {"job": job.id, "token": job.token, "outcome": "succeeded", "result": 3}
        is_alive, (answer,) = worker.report([told])
        assert (is_alive, answer.recorded, answer.state) == (True, True, "finished")
        assert worker.dismiss() == 0
        assert not worker.ping().alive

    def test_tell_why_they_are_refused(self, client):
        with pytest.raises(ApiError) as refused:
            client.register(queues=["nobody knows this"])
        assert (refused.value.status, refused.value.code) == (422, "unknown_queue")
        assert "nobody knows this" in refused.value.detail

    def test_tell_every_misfit(self, client):
        with pytest.raises(ApiError) as refused:
            client.register(pid=-1, name="x" * 101)
        places = {each["where"].rpartition(".")[2] for each in refused.value.errors}
        assert places == {"pid", "name"}

    def test_are_made_again_when_the_answer_was_lost(self, client, line, outside_tasks):
        outside_tasks.add.enqueue(1, 2)
        worker = client.register()
        line.loses += ["dequeue", "outcomes"]
        _, (job,) = worker.dequeue()
        told = {"job": job.id, "token": job.token, "outcome": "succeeded"}
        _, (answer,) = worker.report([told])
        assert answer.recorded
        assert line.sent.count("POST dequeue") == line.sent.count("POST outcomes") == 2

    def test_end_after_a_while_if_nobody_answers(self):
        nowhere = Client("http://127.0.0.1:9/", "token", patience=0.3)
        with nowhere, pytest.raises(UnreachableError) as error:
            nowhere.count()
        assert error.value.code == "unreachable"
        assert "token" not in str(error.value)


class TestForm:
    """What cannot be sent is told at once, and by nobody's secret."""

    @pytest.mark.parametrize("token", ["", " \n", "two words", "hunter2\nX-Other: 1"])
    def test_of_a_token(self, token):
        with pytest.raises(ValueError, match="The token") as refused:
            Client("http://queue/", token)
        assert "hunter2" not in str(refused.value)

    def test_of_a_token_is_not_about_the_end_of_a_line(self):
        server = Scripted(httpx.Response(200, json={"count": 0}))
        Client("http://queue/", " rq_x-y\n", transport=server).count()
        assert server.asked[0].headers["Authorization"] == "Bearer rq_x-y"

    @pytest.mark.parametrize(
        "url", ["", "queue/", "ftp://queue/", "http://", "http://queue:x/"]
    )
    def test_of_an_address(self, url):
        with pytest.raises(ValueError, match="no address"):
            Client(url, "token")

    def test_of_what_the_library_refuses(self):
        """It quotes the header that it does not like."""
        refusal = httpx.LocalProtocolError("Illegal header value b'Bearer hunter2'")
        server = Scripted(refusal)
        with pytest.raises(UnreachableError) as refused:
            Client("http://queue/", "token", patience=0, transport=server).count()
        assert "hunter2" not in str(refused.value)

    def test_of_a_moment(self):
        server = Scripted(*[httpx.Response(201, json={"id": "1"})] * 2)
        client = Client("http://queue/", "token", transport=server)
        before = datetime.now(UTC)
        client.enqueue("add", run_after=timedelta(hours=1))
        told = json.loads(server.asked[0].content)["run_after"]
        late = datetime.fromisoformat(told) - before - timedelta(hours=1)
        assert timedelta() <= late < timedelta(minutes=1)
        with pytest.raises(ValueError, match="without a time zone"):
            client.enqueue("add", run_after=datetime(2026, 11, 19))  # noqa: DTZ001

    def test_of_a_request_is_told_with_every_misfit(self):
        misfits = [{"where": "query.stat", "problem": "unknown"}]
        told = {"code": "invalid", "detail": "It does not fit.", "errors": misfits}
        server = Scripted(httpx.Response(422, json=told))
        with pytest.raises(ApiError) as refused:
            Client("http://queue/", "token", transport=server).count(stat="failed")
        expected = "422 invalid: It does not fit. query.stat: unknown"
        assert str(refused.value) == expected


class TestManagement:
    def test_enqueues_and_looks(self, client, api_server, outside_tasks):
        token = new_token("enqueue:outside-*", "read_arguments")
        with Client(api_server.url, token) as manager:
            told = manager.enqueue("outside-add", [1], {"second": 2}, priority=7)
            assert manager.job(told["id"])["priority"] == 7
            outside_tasks.noted.enqueue("it", 0)
            assert manager.count(state="ready") == 2
            assert manager.count(task="outside-noted") == 1
            found = list(manager.jobs(state="ready"))
        assert {each["task"] for each in found} == {"outside-add", "outside-noted"}

    def test_enqueues_once_where_answers_get_lost(
        self, api_server, outside_tasks, transactional_db
    ):
        token = new_token("enqueue:outside-*")
        with (
            lossy_proxy(api_server.port, every=3) as proxy,
            Client(proxy.url, token) as manager,
        ):
            told = [manager.enqueue("outside-add", [n])["id"] for n in range(10)]
            for _ in range(5):
                calls = [("outside-add", [n]) for n in range(10)]
                told += [each["id"] for each in manager.enqueue_all(calls)]
        assert proxy.lost >= 5
        assert {UUID(each) for each in told} == {*states()}
        assert len({*told}) == len(told) == 60

    def test_is_refused_without_a_scope(self, client):
        with pytest.raises(ApiError) as refused:
            list(client.jobs())
        assert (refused.value.status, refused.value.code) == (403, "forbidden")


class Scripted(httpx.BaseTransport):
    """A server that answers as it is told."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def handle_request(self, request):
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer


class TestPatience:
    def test_counts_until_the_end(self):
        server = Scripted(
            httpx.Response(200, json={"count": 7, "next": "ready.1"}),
            httpx.Response(200, json={"count": 3, "next": None}),
        )
        client = Client("http://queue/", "token", transport=server)
        assert client.count(state="ready") == 10
        asked = dict(server.asked[1].url.params)
        assert asked == {"state": "ready", "behind": "ready.1"}

    @pytest.mark.parametrize("status", [429, 502, 503, 504])
    def test_waits_for_what_passes(self, status):
        busy = httpx.Response(status, headers={"Retry-After": "0"})
        server = Scripted(busy, httpx.Response(200, json={"count": 7}))
        client = Client("http://queue/", "token", transport=server)
        assert client.count(state="ready") == 7
        assert [str(each.url) for each in server.asked] == [
            "http://queue/v1/jobs/count?state=ready"
        ] * 2

    def test_waits_as_long_as_it_is_told(self):
        busy = httpx.Response(429, headers={"Retry-After": "60"})
        client = Client("http://queue/", "token", patience=1, transport=Scripted(busy))
        with pytest.raises(ApiError) as refused:
            client.count()
        assert refused.value.retry_after == 60

    @pytest.mark.parametrize("text", ["<h1>Log in</h1>", "[1]", '{"alive": true}'])
    def test_of_a_worker_also_for_what_nobody_can_read(self, text):
        """A proxy may answer in its place."""
        facts = {"id": str(UUID(int=1)), "secret": "s", "name": "w", "queues": []}
        facts |= {"ping_every": 60.0, "valid_for": 300.0}
        pulse = {"alive": True, "cancelled": [], "quiet": False, "stop": False}
        pulse["now"] = "2026-11-19T09:00:00.000000Z"
        server = Scripted(
            httpx.Response(201, json=facts),
            httpx.Response(200, text=text),
            httpx.Response(200, json={**pulse, "jobs": []}),
        )
        worker = Client("http://queue/", "token", transport=server).register()
        patient = worker.patient(Patience(5, lambda error: error.status == 200))
        assert patient.dequeue() == (Pulse(**pulse), [])

    def test_ends_where_an_answer_cannot_be_decoded(self):
        headers = {"Content-Encoding": "gzip"}
        garbled = httpx.Response(
            200, headers=headers, stream=httpx.ByteStream(b"not like that")
        )
        client = Client(
            "http://queue/", "token", patience=0, transport=Scripted(garbled)
        )
        with pytest.raises(UnreachableError):
            client.count()

    def test_passes_over_lines_that_only_say_that_it_goes_on(self):
        server = Scripted(httpx.Response(200, text='\n{"id": "1"}\n\n\n{"id": "2"}\n'))
        client = Client("http://queue/", "token", transport=server)
        assert [each["id"] for each in client.jobs()] == ["1", "2"]

    def test_of_nothing_else(self):
        server = Scripted(httpx.Response(500, text="<h1>Oh no</h1>"))
        client = Client("http://queue/", "token", transport=server)
        with pytest.raises(ApiError) as refused:
            client.count()
        assert refused.value.detail == "<h1>Oh no</h1>"

    def test_asks_again_for_what_it_has_enqueued(self):
        job = {"id": "1", "task": "add", "state": "ready"}
        server = Scripted(
            httpx.ReadError("lost"),
            httpx.Response(429, headers={"Retry-After": "0"}),
            httpx.Response(201, json=job),
            httpx.Response(201, json=job),
            httpx.Response(201, json=job),
        )
        client = Client("http://queue/", "token", transport=server)
        assert client.enqueue("add", [1], {"second": 2}, priority=3) == job
        client.enqueue("add", [1], request_id=UUID(int=7))
        client.enqueue("add", [1])
        names = [json.loads(each.content)["request_id"] for each in server.asked]
        assert names[0] == names[1] == names[2]
        assert names[3] == str(UUID(int=7))
        assert len({*names}) == 3

    def test_enqueues_many_some_at_a_time(self):
        def answer(request):
            calls = json.loads(request.content)["jobs"]
            jobs = [{"id": call["args"]} for call in calls]
            return httpx.Response(201, json={"jobs": jobs})

        server = Scripted(httpx.ReadError("lost"), answer, answer, answer)
        client = Client("http://queue/", "token", transport=server)
        calls = [("add", [n], {"second": 2}) for n in range(1_001)]
        told = client.enqueue_all(iter(calls), priority=3)
        assert [each["id"] for each in told] == [[n] for n in range(1_001)]
        asked = [json.loads(each.content)["jobs"] for each in server.asked]
        assert [len(each) for each in asked] == [500, 500, 500, 1]
        assert asked[0] == asked[1]
        assert {each["priority"] for each in asked[2]} == {3}
        assert client.enqueue_all([]) == []

    def test_sends_no_more_than_a_server_takes(self):
        def answer(request):
            assert len(request.content) < 2_500_000
            calls = json.loads(request.content)["jobs"]
            return httpx.Response(201, json={"jobs": [{"id": 1} for _ in calls]})

        server = Scripted(*[answer] * 4)
        client = Client("http://queue/", "token", transport=server)
        large = [("add", ["x" * size]) for size in (10, 1_200_000, 900_000, 3_000)]
        assert len(client.enqueue_all([*large, *large])) == 8
        assert len(server.asked) == 4

    def test_goes_on_where_it_was_broken_off(self):
        def answer(request):
            calls = json.loads(request.content)["jobs"]
            return httpx.Response(201, json={"jobs": [{"id": 1} for _ in calls]})

        server = Scripted(answer, httpx.Response(413), answer, answer)
        client = Client("http://queue/", "token", transport=server)
        calls = [("add", [n]) for n in range(600)]
        with pytest.raises(ApiError):
            client.enqueue_all(calls, request_id=UUID(int=7))
        assert len(client.enqueue_all(calls, request_id=UUID(int=7))) == 600
        asked = [json.loads(each.content)["jobs"] for each in server.asked]
        assert asked[:2] == asked[2:]
        names = {each["request_id"] for some in asked for each in some}
        assert len(names) == 600

    def test_names_the_alias_that_is_meant(self):
        server = Scripted(httpx.Response(200, json={"count": 0}))
        Client("http://queue/", "token", using="other", transport=server).count()
        assert server.asked[0].url.params["using"] == "other"


class TestWorker:
    def test_performs_what_it_is_given(self, working, outside_tasks):
        results = [outside_tasks.add.enqueue(n, second=1) for n in range(5)]
        working(("outside-add", add), concurrency=2)
        for n, each in enumerate(results):
            until_state(each, "finished")
            each.refresh()
            assert each.return_value == n + 1

    def test_takes_tiny_jobs_many_at_a_time(self, working, line, outside_tasks):
        results = [outside_tasks.add.enqueue(n, 1) for n in range(300)]
        running = working(("outside-add", add), concurrency=2, prefetch=98)
        until(lambda: {state_of(each) for each in results[-3:]} == {"finished"})
        running.stop()
        assert set(states().values()) == {"finished"}
        assert line.sent.count("POST dequeue") < 20
        assert line.sent.count("POST outcomes") < 100

    def test_tells_of_what_a_handler_raises(self, working, outside_tasks, caplog):
        def explode(job):
            raise ZeroDivisionError(f"attempt {job.attempt}")

        result = outside_tasks.fragile.enqueue()
        working(("outside-fragile", explode))
        until(lambda: Attempt.objects.filter(job_id=result.id).count() == 1)
        attempt = Attempt.objects.get(job_id=result.id)
        assert attempt.exception_class == "ZeroDivisionError"
        assert attempt.message == "attempt 1"
        assert "in explode" in attempt.traceback
        expected = f"Job {result.id} (outside-fragile, attempt 1) failed: "
        expected += "ZeroDivisionError: 'attempt 1'."
        assert expected in caplog.messages

    @pytest.mark.parametrize(
        ("error", "state", "kind"),
        [
            (Retry("later", after=timedelta(hours=1)), "scheduled", None),
            (Discard("never"), "failed", "discarded"),
            (TimedOut(), "failed", "timed_out"),
            (Cancelled(), "failed", "cancelled"),
            (SystemExit(3), "failed", None),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_heeds_what_a_handler_wants(
        self, working, outside_tasks, error, state, kind
    ):
        def refuse(job):
            raise error

        wants_retry = state == "scheduled"
        task = outside_tasks.fragile if wants_retry else outside_tasks.add
        result = task.enqueue()
        working((task.module_path, refuse))
        until_state(result, state)
        if kind:
            job = Job.objects.get(pk=result.id)
            assert job.failed_execution.kind == kind

    def test_fails_what_it_does_not_know(self, working, outside_tasks):
        result = outside_tasks.add.enqueue(1, 2)
        working()
        until_state(result, "failed")
        job = Job.objects.get(pk=result.id)
        assert "outside-add" in job.failed_execution.message

    @pytest.mark.parametrize("result", [object(), float("nan"), "x" * 3**14])
    def test_fails_what_cannot_be_told(self, working, outside_tasks, result):
        bad = outside_tasks.add.enqueue("bad")
        good = [outside_tasks.add.enqueue(n) for n in range(10)]
        begun = threading.Barrier(11)

        def answer(job, what):
            # All of them end at the same time, so that they are reported together.
            begun.wait(10)
            return result if what == "bad" else what

        working(("outside-add", answer), concurrency=11)
        until_state(bad, "failed")
        for each in good:
            until_state(each, "finished")

    def test_outlives_what_a_handler_does_to_errors_and_results(
        self, working, outside_tasks
    ):
        class Mute(Exception):
            def __str__(self):
                raise ZeroDivisionError

        given = []

        def misbehave(job, how):
            if how == "mute":
                raise Mute
            if how == "never":
                raise Retry(after=float("inf"))
            given.append(job)
            return given  # and goes on to change it

        ways = ["mute", "never", "itself"]
        bad = [outside_tasks.add.enqueue(each) for each in ways]
        running = working(("outside-add", misbehave), concurrency=1)
        for each in bad:
            until_state(each, "failed")
        worker = Process.objects.get(kind="External")
        assert running.stop() is None
        told = {
            each.exception_class: each.message
            for each in FailedExecution.objects.filter(worker_id=worker.name)
        }
        mute = next(name for name in told if name.endswith("Mute"))
        assert told.pop(mute) == "<it has no text: ZeroDivisionError>"
        assert told.keys() == {"ValueError", "TypeError"}

    def test_performs_on_although_what_it_has_was_late(self, working, outside_tasks):
        """What cannot be begun in time goes back, and its hand is free for others."""
        begun = threading.Event()

        def linger(job, seconds):
            begun.set()
            time.sleep(seconds)

        first = outside_tasks.brief.enqueue(3.5)
        working(("outside-brief", linger), prefetch=2)
        assert begun.wait(10)
        others = [outside_tasks.brief.enqueue(0) for _ in range(3)]
        for each in others:
            until_state(each, "finished")
        assert state_of(first) in ("failed", "finished")

    def test_goes_by_no_clock_but_its_own(self, working, line, outside_tasks):
        line.date = IN_A_CENTURY
        result = outside_tasks.brief.enqueue()
        working(("outside-brief", lambda job: job.remaining))
        until_state(result, "finished")
        result.refresh()
        assert 0 < result.return_value <= 2

    def test_takes_its_time_where_all_jobs_are_late(
        self, working, line, outside_tasks, monkeypatch
    ):
        monkeypatch.setattr("robust_queue.client.worker.PACE", 3600)
        line.changes.append(make_late)
        result = outside_tasks.brief.enqueue()
        working(("outside-brief", lambda job: None))
        until(lambda: "POST outcomes" in line.sent, "it was released")
        pings = line.sent.count("POST ping")
        until(lambda: line.sent.count("POST ping") > pings + 3, "it lives on")
        assert line.sent.count("POST dequeue") == 1
        assert state_of(result) == "ready"

    def test_lets_a_handler_know_of_its_end(self, working, outside_tasks):
        told = []

        def watch(job):
            told.append(job.remaining)
            while not job.wait(10):
                pass
            job.check()

        result = outside_tasks.hasty.enqueue()
        working(("outside-hasty", watch))
        until(lambda: told, "it runs")
        assert 20 < told[0] <= 31
        assert cancel("default", result.id)
        until_state(result, "failed")
        assert Job.objects.get(pk=result.id).failed_execution.kind == "cancelled"

    @pytest.mark.parametrize("call", ["workers", "dequeue", "outcomes", "ping"])
    def test_does_nothing_twice_when_answers_get_lost(
        self, working, line, outside_tasks, call
    ):
        seen = []

        def note(job, label, seconds):
            seen.append(label)
            job.wait(seconds)

        line.loses += [call] * 2
        results = [outside_tasks.noted.enqueue(n, 0.05) for n in range(20)]
        working(("outside-noted", note), concurrency=3, ping_every=0.05)
        until(lambda: not line.loses, "answers were lost")
        for each in results:
            until_state(each, "finished")
        assert sorted(seen) == list(range(20))

    def test_is_heard_soon_after_an_outage(self, working, line, outside_tasks):
        line.loses += ["ping"] * 12
        working(ping_every=0.05)
        until(lambda: line.sent.count("POST ping") > 12, "it is heard", timeout=10)

    def test_asks_anew_if_an_answer_never_gets_through(
        self, working, line, outside_tasks, monkeypatch
    ):
        for module in ("bench", "worker"):
            monkeypatch.setattr(f"robust_queue.client.{module}.ANSWER_IS_OLD", 0.5)
        line.largest, seen = 2, []

        def limits():
            told = line.bodies("dequeue")
            return list({each["request_id"]: each["limit"] for each in told}.values())

        results = [outside_tasks.noted.enqueue(n, 0) for n in range(4)]
        working(
            ("outside-noted", lambda job, n, _: seen.append(n)), concurrency=4, wait=0.1
        )
        until(lambda: len(limits()) > 1, "it has given up")
        assert age_claims() == 4
        for each in results:
            until_state(each, "finished")
        assert sorted(seen) == list(range(4))
        assert limits()[:2] == [4, 1]

    def test_tells_with_a_ping_what_it_had_heard_by_then(
        self, working, line, outside_tasks, monkeypatch
    ):
        # The only dequeue is answered first; then each ping is told of by the next.
        monkeypatch.setattr("robust_queue.client.worker.PACE", 3600)
        working(wait=0)
        until(lambda: line.sent.count("POST ping") > 3, "it pings")
        pings = [each for each in line.bodies("ping") if "jobs" in each][:3]
        begin = line.heard.index(pings[0]["as_of"])
        assert [each["as_of"] for each in pings] == line.heard[begin : begin + 3]
        assert [each["jobs"] for each in pings] == [[]] * 3

    def test_starts_anew_when_it_was_taken_for_dead(self, working, outside_tasks):
        runs = []

        def hang_at_first(job, label, seconds):
            runs.append(job.attempt)
            if len(runs) == 1:
                until(lambda: job.is_cancelled, "it is lost")
            return job.attempt

        result = outside_tasks.noted.enqueue("it", 0)
        working(("outside-noted", hang_at_first))
        until(lambda: runs, "it runs")
        (first,) = Process.objects.all()
        strike_off()
        # There is no dispatcher here.
        until(lambda: dispatch_due("default"), "its next attempt is due")
        until_state(result, "finished")
        result.refresh()
        assert result.return_value == 2
        assert Process.objects.get().pk != first.pk

    def test_gets_over_a_server_that_is_gone(
        self, transactional_db, tmp_path, outside_tasks
    ):
        server = ApiServer(tmp_path).start()
        is_gone, runs = threading.Event(), []

        def wait(job, *args):
            runs.append(job.id)
            is_gone.wait(20)

        client = Client(server.url, new_token())
        worker = Worker(client, **QUICK)
        worker.task("outside-add")(wait)
        result = outside_tasks.add.enqueue()
        running = InThread(worker)
        try:
            until(lambda: runs, "it runs")
            server.clean_up()
            is_gone.set()
            another = outside_tasks.add.enqueue()
            server.start()
            until_state(result, "finished")
            until_state(another, "finished")
            assert runs == [result.id, another.id]
            assert running.stop() is None
        finally:
            running.stop()
            client.close()
            server.clean_up()

    def test_ends_with_its_token(self, working, outside_tasks):
        running = working(("outside-add", add))
        until(Process.objects.exists, "it is registered")
        ApiToken.objects.update(revoked_at=timezone.now())
        error = running.wait()
        assert (error.status, error.code) == (401, "unauthenticated")

    def test_does_not_begin_where_it_may_not(self, working, client, outside_tasks):
        error = working(queues=["nobody knows this"]).wait()
        assert error.code == "unknown_queue"

    def test_rests_when_it_is_to_be_quiet(self, working, outside_tasks):
        running = working(("outside-add", add), wait=0.1)
        (worker,) = until(Process.objects.all, "it is registered")
        quiet_process("default", worker.pk)
        until(lambda: '"quiet": true' in Process.objects.get().metadata)
        result = outside_tasks.add.enqueue(1, 2)
        assert running.stop() is None
        assert state_of(result) == "ready"

    def test_gives_back_what_has_not_begun_when_it_is_to_be_quiet(
        self, working, outside_tasks
    ):
        may_end, begun = threading.Event(), []

        def wait(job, n, _):
            begun.append(n)
            may_end.wait(20)

        results = [outside_tasks.noted.enqueue(n, 0) for n in range(3)]
        working(("outside-noted", wait), prefetch=9)
        until(lambda: begun, "one runs")
        until_state(results[-1], "claimed")
        quiet_process("default", Process.objects.get().pk)
        for each in results[1:]:
            until_state(each, "ready")
        may_end.set()
        until_state(results[0], "finished")
        assert begun == [0]

    def test_does_not_begin_what_was_cancelled(self, working, outside_tasks):
        may_end, begun = threading.Event(), []

        def wait(job, n, _):
            begun.append(n)
            may_end.wait(20)

        results = [outside_tasks.noted.enqueue(n, 0) for n in range(3)]
        working(("outside-noted", wait), prefetch=9)
        until(lambda: begun, "one runs")
        until_state(results[-1], "claimed")
        assert cancel("default", results[1].id)
        # The only hand is not needed for that.
        until_state(results[1], "failed")
        assert Job.objects.get(pk=results[1].id).failed_execution.kind == "cancelled"
        may_end.set()
        until_state(results[2], "finished")
        assert begun == [0, 2]

    def test_does_not_begin_what_comes_cancelled(self, working, line, outside_tasks):
        """As a repeated answer may tell of it."""
        line.changes.append(make_cancelled)
        result, begun = outside_tasks.noted.enqueue("it", 0), []
        working(("outside-noted", lambda job, *_: begun.append(job)))
        until_state(result, "failed")
        assert Job.objects.get(pk=result.id).failed_execution.kind == "cancelled"
        assert not begun

    def test_leaves_when_an_operator_says_so(self, working, outside_tasks):
        running = working()
        (worker,) = until(Process.objects.all, "it is registered")
        stop_process("default", worker.pk)
        assert running.wait() is None
        assert not Process.objects.exists()

    def test_finishes_what_runs_and_gives_back_the_rest(self, working, outside_tasks):
        may_end, begun = threading.Event(), []

        def wait(job, n, _):
            begun.append(n)
            may_end.wait(20)

        results = [outside_tasks.noted.enqueue(n, 0) for n in range(5)]
        running = working(("outside-noted", wait), prefetch=9)
        until(lambda: begun, "one runs")
        until_state(results[-1], "claimed")
        running.worker.stop()
        until_state(results[-1], "ready")
        may_end.set()
        assert running.wait() is None
        found = [state_of(each) for each in results]
        assert found == ["finished", "ready", "ready", "ready", "ready"]
        assert not Process.objects.exists()

    def test_leaves_at_once_when_told_twice(self, working, outside_tasks):
        begun = threading.Event()

        def wait(job, *args):
            begun.set()
            job.wait(30)

        result = outside_tasks.noted.enqueue("it", 0)
        running = working(("outside-noted", wait))
        assert begun.wait(10)
        running.worker.stop()
        assert running.stop() is None
        assert state_of(result) == "ready"
        assert not Process.objects.exists()

    @pytest.mark.parametrize("times", [1, 2])
    def test_keeps_what_runs_on_although_it_was_told_to_end(
        self, working, outside_tasks, times
    ):
        """Nobody is to begin it once more beside that."""
        may_end, begun = threading.Event(), threading.Event()

        def wait(job, *args):
            begun.set()
            assert may_end.wait(20)

        results = [outside_tasks.noted.enqueue(n, 0) for n in range(2)]
        running = working(("outside-noted", wait), prefetch=1, grace=20 * times - 20)
        assert begun.wait(10)
        until_state(results[1], "claimed")
        for _ in range(times):
            running.worker.stop()
        try:
            assert running.wait() is None
            assert [state_of(each) for each in results] == ["claimed", "ready"]
            # What it still has goes back when it is missed.
            strike_off()
            assert state_of(results[0]) == "scheduled"
        finally:
            may_end.set()


def test_a_hand_waits_on_where_all_jobs_were_late():
    class Late:
        id, token, is_late = "job", "token", True

    desk, me = Bench(hands=1, ahead=0), object()
    desk.begin(me)
    desk.put(me, [Late()])
    hand = threading.Thread(target=desk.next, daemon=True)
    hand.start()
    _, (report,) = desk.reports()
    assert report["outcome"] == "released"
    hand.join(0.3)
    assert hand.is_alive()
    desk.close()
    hand.join(5)
    assert not hand.is_alive()


@pytest.mark.parametrize("after", [float("nan"), float("inf"), -1, timedelta(days=400)])
def test_nobody_is_told_to_come_again_at_no_time(after):
    with pytest.raises(ValueError, match="from 0 seconds to a year"):
        Retry("later", after=after)


def test_nothing_is_said_of_what_is_held_while_an_old_answer_is_due(monkeypatch):
    """It may tell of jobs that would be taken back as never heard of."""
    desk, me = Bench(hands=1, ahead=0), object()
    desk.begin(me)
    desk.hear("now")
    assert desk.room() == 1
    assert desk.held() == ([], "now")
    monkeypatch.setattr(bench, "ANSWER_IS_OLD", -1)
    assert desk.held() is None
    desk.put(me, [])
    assert desk.held() == ([], "now")


def test_nothing_is_said_of_what_is_held_once_it_was_abandoned():
    """It may run on, and would go back if it were not named."""

    class Deaf:
        id, token, is_late = "job", "token", False

        def cancel(self):
            pass

    desk, me = Bench(hands=1, ahead=0), object()
    desk.begin(me)
    desk.hear("now")
    desk.put(me, [Deaf()])
    assert desk.next().id == "job"
    assert desk.held() == (["job"], "now")
    assert desk.abandon(within=0) == 1
    assert desk.held() is None


def test_nothing_is_said_of_what_is_held_before_anything_was_heard():
    """Nobody could tell how old that is when it arrives."""
    assert Bench(hands=1, ahead=0).held() is None


def test_a_program_without_django_works_and_leaves_in_order(
    transactional_db, api_server, outside_tasks, tmp_path
):
    path = tmp_path / "witness"
    program = Outside(
        tmp_path,
        "python",
        api_server.url,
        new_token(),
        queues="outside",
        environment={"RQ_WITNESS": str(path)},
    )
    try:
        result = outside_tasks.noted.enqueue("it", 1)
        program.start()
        program.until(path.exists, "it runs")
        assert program.stop() == 0, program.log
        assert state_of(result) == "finished"
        assert not Process.objects.exists()
    finally:
        program.clean_up()
