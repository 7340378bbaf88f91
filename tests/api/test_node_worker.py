"""The worker in Node, which knows an address, a token and the OpenAPI document."""

import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from django.utils import timezone

from robust_queue.client import Client
from robust_queue.lifecycle.cancel import cancel
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.quiet import stop_process
from robust_queue.models import ApiToken, Attempt, Job, Process
from tests.support.invariants import state_of, states
from tests.support.lossy_proxy import lossy_proxy
from tests.support.outside import (
    ApiServer,
    Outside,
    age_claims,
    api_server,
    make_cancelled,
    make_late,
    new_token,
    outside_tasks,
    strike_off,
)
from tests.support.supervisors import ROOT, until
from tests.support.witness import Witness

__all__ = ["api_server", "outside_tasks"]

pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="Node is missing")


@pytest.fixture
def witness(tmp_path):
    return Witness(tmp_path)


@pytest.fixture
def node(transactional_db, api_server, outside_tasks, witness, tmp_path):
    """Starts workers; whatever is left of them ends with the test."""
    started = []

    def start(url=api_server.url, token=None, **environment):
        environment = {**witness.environment, "QUEUE_PING": "0.2", **environment}
        token = token or new_token()
        worker = Outside(
            *(tmp_path, "node", url, token),
            queues="outside",
            environment=environment,
        )
        started.append(worker)
        return worker.start()

    yield start
    for each in started:
        each.clean_up()


class Shop(ApiServer):
    """The example project, with a database of its own."""

    application = "django.core.wsgi:get_wsgi_application()"

    def __init__(self, folder):
        super().__init__(folder)
        self._environment["DJANGO_SETTINGS_MODULE"] = "example_project.settings"
        self._environment["SHOP_DATABASE"] = str(folder / "shop.sqlite3")
        self._command("migrate", "--verbosity=0")

    def token(self, *scopes):
        """A new one, as the command tells of it."""
        told = [f"--scope={each}" for each in scopes]
        output = self._command("robust_queue", "tokens", "create", "labels", *told)
        return re.search(r"rq_\S+", output)[0]

    @contextmanager
    def node(self, token):
        """Its program, for the block."""
        worker = Outside(self.folder, "shop", self.url, token, queues="")
        try:
            yield worker.start()
            assert worker.stop() == 0, worker.log
        finally:
            worker.clean_up()

    def _command(self, *arguments):
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        return subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=True
        ).stdout


@pytest.fixture
def shop(tmp_path):
    server = Shop(tmp_path)
    yield server.start()
    server.clean_up()


def until_state(worker, result, state):
    worker.until(lambda: state_of(result) == state, f"it is {state}")


def test_performs_what_it_is_given(node, outside_tasks):
    results = [outside_tasks.add.enqueue(n, 1) for n in range(20)]
    worker = node()
    for n, each in enumerate(results):
        until_state(worker, each, "finished")
        each.refresh()
        assert each.return_value == n + 1
    assert worker.stop() == 0
    assert not Process.objects.exists()


def test_takes_tiny_jobs_many_at_a_time(node, outside_tasks):
    results = [outside_tasks.add.enqueue(n, 1) for n in range(300)]
    begun = time.monotonic()
    worker = node(QUEUE_CONCURRENCY="100")
    for each in results:
        until_state(worker, each, "finished")
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize(
    ("how", "state"),
    [
        ("retry", "scheduled"),
        ("discard", "failed"),
        ("oh no", "scheduled"),
        ("never", "scheduled"),
        ("nothing", "scheduled"),
        ("mute", "scheduled"),
    ],
)
def test_tells_what_a_handler_throws(node, outside_tasks, how, state):
    result = outside_tasks.fragile.enqueue(how)
    worker = node()
    until_state(worker, result, state)
    if how == "oh no":
        attempt = Attempt.objects.get(job_id=result.id)
        assert (attempt.exception_class, attempt.message) == ("RangeError", "oh no")
        assert "outside_worker.mjs" in attempt.traceback
        said = (
            f'Job {result.id} (outside-fragile, attempt 1) failed: RangeError: "oh no".'
        )
        worker.until(lambda: said in worker.log, "it says so as well")


def test_fails_what_it_does_not_know_or_cannot_tell(node, outside_tasks):
    unknown = outside_tasks.add.enqueue(1, 2)
    Job.objects.filter(pk=unknown.id).update(task_path="outside-unheard-of")
    large = outside_tasks.big.enqueue()
    good = outside_tasks.add.enqueue(1, 2)
    worker = node()
    until_state(worker, good, "finished")
    until_state(worker, large, "failed")
    until_state(worker, unknown, "failed")
    message = Job.objects.get(pk=unknown.id).failed_execution.message
    assert "outside-unheard-of" in message


def test_heeds_a_cancellation(node, outside_tasks):
    result = outside_tasks.hasty.enqueue()
    worker = node()
    until_state(worker, result, "claimed")
    assert cancel("default", result.id)
    until_state(worker, result, "failed")
    assert Job.objects.get(pk=result.id).failed_execution.kind == "cancelled"


def test_does_not_begin_what_comes_cancelled(node, api_server, outside_tasks, witness):
    result = outside_tasks.noted.enqueue("it", 0)
    with lossy_proxy(api_server.port) as proxy:
        proxy.changes.append(make_cancelled)
        until_state(node(proxy.url), result, "failed")
    assert Job.objects.get(pk=result.id).failed_execution.kind == "cancelled"
    assert not witness.count("begins")


def test_does_nothing_twice_when_answers_get_lost(
    node, api_server, outside_tasks, witness
):
    results = [outside_tasks.noted.enqueue(f"it-{n}", 0.02) for n in range(60)]
    with lossy_proxy(api_server.port, every=4) as proxy:
        worker = node(proxy.url)
        for each in results:
            until_state(worker, each, "finished")
        assert proxy.lost > 5
    assert set(witness.count("begins").values()) == {1}
    assert len(witness.count("begins")) == 60


def test_goes_by_no_clock_but_its_own(node, api_server, outside_tasks):
    result = outside_tasks.hasty.enqueue()
    with lossy_proxy(api_server.port, date="Tue, 19 Nov 2126 09:00:00 GMT") as proxy:
        worker = node(proxy.url)
        until_state(worker, result, "claimed")
        assert cancel("default", result.id)
        until_state(worker, result, "failed")
    assert Job.objects.get(pk=result.id).failed_execution.kind == "cancelled"


def test_takes_its_time_where_all_jobs_are_late(node, api_server, outside_tasks):
    result = outside_tasks.hasty.enqueue()
    with lossy_proxy(api_server.port) as proxy:
        proxy.changes.append(make_late)
        worker = node(proxy.url)
        worker.until(lambda: proxy.sent.count("ping") > 5, "it lives")
        assert 0 < proxy.sent.count("dequeue") < 5
        assert worker.stop() == 0
    assert state_of(result) == "ready"


def test_is_heard_soon_after_an_outage(node, api_server, outside_tasks):
    with lossy_proxy(api_server.port) as proxy:
        proxy.loses += ["ping"] * 9
        worker = node(proxy.url)
        worker.until(lambda: proxy.sent.count("ping") > 9, "it is heard", timeout=10)


def test_asks_anew_if_an_answer_never_gets_through(
    node, api_server, outside_tasks, witness
):
    results = [outside_tasks.noted.enqueue(f"it-{n}", 0) for n in range(4)]
    with lossy_proxy(api_server.port) as proxy:
        proxy.largest = 2

        def limits():
            told = [body for end, body in proxy.bodies if end == "dequeue"]
            names = {each["request_id"]: each["limit"] for each in told}
            return list(names.values())

        worker = node(proxy.url, QUEUE_OLD="500", QUEUE_CONCURRENCY="4")
        worker.until(lambda: len(limits()) > 1, "it has given up")
        assert age_claims() == 4
        for each in results:
            until_state(worker, each, "finished")
        assert limits()[:2] == [4, 1]
    assert witness.count("begins") == {f"it-{n}": 1 for n in range(4)}


def test_tells_with_a_ping_what_it_had_heard_by_then(node, api_server, outside_tasks):
    result = outside_tasks.hasty.enqueue()
    with lossy_proxy(api_server.port) as proxy:
        worker = node(proxy.url)
        until_state(worker, result, "claimed")
        begin = len(proxy.bodies)
        worker.until(lambda: proxy.sent[begin:].count("ping") > 3, "it pings")
        pings = [body for end, body in proxy.bodies[begin:] if end == "ping"]
    moments = [each["as_of"] for each in pings if result.id in each["jobs"]]
    assert len(moments) >= 3
    # Each of them has heard the answer to the one before.
    assert moments == sorted(set(moments))


def test_starts_anew_when_it_was_taken_for_dead(node, outside_tasks, witness):
    result = outside_tasks.noted.enqueue("it", 1)
    worker = node()
    worker.until(lambda: witness.has("begins", "it"), "it runs")
    first = Process.objects.get()
    strike_off()
    # There is no dispatcher here.
    until(lambda: dispatch_due("default"), "its next attempt is due")
    until_state(worker, result, "finished")
    assert witness.count("ends") == {"it": 1}
    assert Process.objects.get().pk != first.pk


def test_finishes_what_runs_before_it_leaves(node, outside_tasks, witness):
    results = [outside_tasks.noted.enqueue(f"it-{n}", 1) for n in range(5)]
    worker = node()
    worker.until(lambda: len(witness.count("begins")) == 3, "three of them run")
    assert worker.stop() == 0, worker.log
    found = [state_of(each) for each in results]
    assert sorted(found) == ["finished"] * 3 + ["ready"] * 2
    assert not Process.objects.exists()


def test_leaves_without_what_it_has_begun_if_that_heeds_nothing(
    node, outside_tasks, witness
):
    """It runs until the very end: nobody is to begin it once more before."""
    result = outside_tasks.fragile.enqueue("deaf")
    worker = node(QUEUE_GRACE="0.2")
    worker.until(lambda: witness.has("begins", "deaf"), "it runs")
    assert worker.stop() == 0, worker.log
    assert "Jobs that run on until this program ends: 1." in worker.log
    assert state_of(result) == "claimed"


def test_gives_back_what_heeds_that_it_is_to_end(node, outside_tasks, witness):
    result = outside_tasks.noted.enqueue("it", 60)
    worker = node(QUEUE_GRACE="0.2")
    worker.until(lambda: witness.has("begins", "it"), "it runs")
    assert worker.stop() == 0, worker.log
    assert state_of(result) == "ready"
    assert not Process.objects.exists()


def test_leaves_when_an_operator_says_so(node, outside_tasks):
    worker = node()
    (row,) = worker.until(lambda: list(Process.objects.all()), "it is registered")
    stop_process("default", row.pk)
    assert worker.wait() == 0


def test_draws_the_labels_of_the_shop(shop):
    token = shop.token("work:labels", "enqueue:draw-label", "read_arguments")
    with Client(shop.url, token) as client, shop.node(token) as worker:
        job = client.enqueue("draw-label", [7, ["Ada <Lovelace>", "London"]])
        worker.until(
            lambda: client.job(job["id"])["state"] == "finished", "it is drawn"
        )
        label = client.job(job["id"])["result"]
    assert label.startswith("<svg ")
    assert "Parcel 7" in label
    assert "Ada &#60;Lovelace&#62;" in label


@pytest.mark.parametrize("token", [" ", "hunter2\nX-Other: 1"])
def test_does_not_begin_with_what_is_no_token(node, outside_tasks, token):
    worker = node(token=token)
    assert worker.wait() == 1
    assert "The token" in worker.log
    assert "hunter2" not in worker.log


def test_says_that_nobody_answers(node, outside_tasks):
    worker = node("http://127.0.0.1:9/")
    said = r"0 unreachable: GET /v1/openapi.json: .*Trying again in 0\.\d s\."
    worker.until(lambda: re.search(said, worker.log), "it says so")


def test_ends_with_its_token(node, outside_tasks):
    worker = node()
    worker.until(Process.objects.exists, "it is registered")
    ApiToken.objects.update(revoked_at=timezone.now())
    assert worker.wait() == 1
    assert "401 unauthenticated" in worker.log
    assert states() == {}
