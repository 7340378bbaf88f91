"""How soon an idle worker begins a job, on PostgreSQL with notifications.

Measured from the call of ``enqueue()`` to the first line of the task, by one clock, or
until a worker outside that waits has its answer. The worker is left alone before each,
so that it has come to rest; it hardly polls, so that only news can be that quick. The
figures are printed: `make test-long ARGS=-s`.

    RQ_LATENCY_JOBS=300   how many jobs; a third as many for the worker outside
"""

import json
import os
import random
import time
from statistics import quantiles

import pytest

from tests.api.test_waiting import enlisted, server_of
from tests.settings import KIND
from tests.support.api_servers import SERVERS
from tests.support.supervisors import until
from tests.testapp.process_tasks import mark
from tests.testapp.witnessed_tasks import once

__all__ = ["enlisted", "server_of"]

JOBS = int(os.environ.get("RQ_LATENCY_JOBS") or 300)


@pytest.mark.skipif(KIND != "postgresql", reason="only PostgreSQL has notifications")
def test_pick_up_from_idle(witnessed, witness):
    supervisor = witnessed(workers=[{"polling_interval": 60}]).until_up()
    supervisor.until(lambda: "Notifications arrive" in supervisor.log, "it hears")
    waits = [_wait(witness, f"it-{n}") for n in range(JOBS)]
    supervisor.stop()
    judge("pick-up from idle", waits)


@pytest.mark.skipif(KIND != "postgresql", reason="only PostgreSQL has notifications")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", SERVERS)
def test_answer_to_a_worker_outside(server_of, enlisted, kind):
    server = server_of(kind)
    worker, waits = enlisted(server), []
    worker.call("/dequeue", wait=5)
    server.until(lambda: "Notifications arrive" in server.log, "it hears")
    for n in range(JOBS // 3):
        worker.send_call("/dequeue", wait=20)
        # It looks after a tenth of a second, two tenths, four, and so on.
        time.sleep(random.uniform(2, 4))
        begun = time.monotonic()
        mark.enqueue(n)
        (job,) = json.loads(worker.getresponse().read())["jobs"]
        waits.append(time.monotonic() - begun)
        ended = {"job": job["id"], "token": job["token"], "outcome": "succeeded"}
        worker.call("/outcomes", outcomes=[ended])
    judge(f"answer to a worker outside, {kind}", waits)


def judge(what, waits):
    cuts = quantiles(waits, n=100)
    median, late, worst = (1000 * each for each in (cuts[49], cuts[98], max(waits)))
    print(  # noqa: T201
        f"\n{what}: p50 {median:.1f} ms, p99 {late:.1f} ms, "
        f"max {worst:.1f} ms over {len(waits)} jobs"
    )
    assert worst < 1000, "a lost wake-up waits for seconds"


def _wait(witness, label):
    time.sleep(random.uniform(0.1, 0.4))  # it comes to rest
    begun = time.monotonic()
    once.enqueue(label)
    until(lambda: witness.has("ends", label), "it has run")
    moments = [
        float(moment)
        for event, told, _, moment in witness.events()
        if (event, told) == ("begins", label)
    ]
    return moments[0] - begun
