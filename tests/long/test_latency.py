"""How soon an idle worker begins a job, on PostgreSQL with notifications.

Measured from the call of ``enqueue()`` to the first line of the task, by one clock. The
worker is left alone before each, so that it has come to rest; it hardly polls, so that
only news can be that quick. The figures are printed: `make test-long ARGS=-s`.

    RQ_LATENCY_JOBS=300   how many jobs
"""

import os
import random
import time
from statistics import quantiles

import pytest

from tests.settings import KIND
from tests.support.supervisors import until
from tests.testapp.witnessed_tasks import once

JOBS = int(os.environ.get("RQ_LATENCY_JOBS") or 300)


@pytest.mark.skipif(KIND != "postgresql", reason="only PostgreSQL has notifications")
def test_pick_up_from_idle(witnessed, witness):
    supervisor = witnessed(workers=[{"polling_interval": 60}]).until_up()
    supervisor.until(lambda: "Notifications arrive" in supervisor.log, "it hears")
    waits = [_wait(witness, f"it-{n}") for n in range(JOBS)]
    supervisor.stop()
    cuts = quantiles(waits, n=100)
    median, late, worst = (1000 * each for each in (cuts[49], cuts[98], max(waits)))
    print(  # noqa: T201
        f"\npick-up from idle: p50 {median:.1f} ms, p99 {late:.1f} ms, "
        f"max {worst:.1f} ms over {JOBS} jobs"
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
