"""1,000,000 finished jobs are cleared while others flow, which hardly notice.

Workers run about 1,000 tiny tasks a second. After a while a supervisor with nothing but
a dispatcher joins, which finds a million jobs that finished long ago. What flows before
and during the clearing is compared within the same run. The figures are printed:
`make test-long ARGS=-s`.

    RQ_CLEAR_JOBS=1000000   how many jobs there are to be cleared
    RQ_CLEAR_FLOW=1000      how many are enqueued each second
"""

import os
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import quantiles

import pytest
from django.db import connections
from django.utils import timezone

from robust_queue import enqueue_all
from robust_queue.models import FinishedExecution
from tests.settings import KIND
from tests.support.backlog import analyze
from tests.support.ended import DAY, fill_with_ended
from tests.testapp.process_tasks import nothing

JOBS = int(os.environ.get("RQ_CLEAR_JOBS") or 1_000_000)
FLOW = int(os.environ.get("RQ_CLEAR_FLOW") or 1000)
BEFORE = 30.0
LONGEST = 1800
BEAT = 0.05
WINDOW = timedelta(seconds=5)
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(KIND != "postgresql", reason="a million rows, on a server")
@pytest.mark.timeout(LONGEST + 600)
def test_a_million_finished_jobs(supervised):
    fill_with_ended("finished", JOBS, ago=2 * DAY)
    analyze()
    at_first = oldest()
    workers = supervised(dispatchers=[], workers=[{"threads": 3}]).until_up()
    with flowing():
        time.sleep(5)  # it comes to speed
        begun = timezone.now()
        time.sleep(BEFORE)
        joined = timezone.now()
        dispatcher = supervised("--only", "dispatchers")
        dispatcher.until(lambda: dispatcher.pids("Dispatcher"), "it is up")
        (pid,) = dispatcher.pids("Dispatcher")
        dispatcher.until(lambda: oldest() != at_first, "it clears", timeout=90)
        first, memory = timezone.now(), [rss(pid)]
        while oldest():
            assert timezone.now() < joined + timedelta(seconds=LONGEST)
            time.sleep(1)
            memory.append(rss(pid))
        last = timezone.now()
    assert workers.stop() == dispatcher.stop() == 0
    quiet, busy = flow(begun, joined), flow(first, last)
    slowest = min(flow(*each) for each in windows(first, last))
    seconds = (last - first).total_seconds()
    print(  # noqa: T201
        f"\nclearing: {JOBS:,} jobs in {seconds:.0f} s, {JOBS / seconds:,.0f}/s\n"
        f"flow: {quiet:,.0f}/s before, {busy:,.0f}/s meanwhile ({busy / quiet:.0%}), "
        f"{slowest:,.0f}/s in the slowest {WINDOW.seconds} s\n"
        f"from enqueue to end: {delays(begun, joined)} before, "
        f"{delays(first, last)} meanwhile\n"
        f"memory of the dispatcher: {memory[0]:.1f} MB at first, "
        f"{max(memory):.1f} MB at most, {memory[-1]:.1f} MB at last"
    )
    assert busy >= 0.8 * quiet
    # A backlog that was made up for in the end would not show in the mean.
    assert slowest >= 0.8 * quiet
    assert max(memory) < memory[0] + 8


@contextmanager
def flowing():
    """Jobs are enqueued at an even pace, in a thread, until the block ends."""
    is_over = threading.Event()
    thread = threading.Thread(target=_enqueue_until, args=(is_over,))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _enqueue_until(is_over):
    due = time.monotonic()
    try:
        while not is_over.is_set():
            enqueue_all(nothing.bind() for _ in range(int(FLOW * BEAT)))
            # Who is late is not made up for: it would hide that the flow was slower.
            due = max(due + BEAT, time.monotonic() - BEAT)
            time.sleep(max(due - time.monotonic(), 0))
    finally:
        connections.close_all()


def oldest():
    """When the oldest job finished that is left: a look that costs little."""
    old = FinishedExecution.objects.filter(finished_at__lt=timezone.now() - DAY)
    moments = old.order_by("finished_at").values_list("finished_at", flat=True)
    return moments.first()


def flow(begin, end):
    ended = FinishedExecution.objects.filter(finished_at__range=(begin, end))
    return ended.count() / (end - begin).total_seconds()


def windows(begin, end):
    """Stretches of time, one behind the other, and the whole if it is shorter."""
    count = max((end - begin) // WINDOW, 1)
    length = min(WINDOW, end - begin)
    return [(begin + n * length, begin + (n + 1) * length) for n in range(count)]


def delays(begin, end):
    ended = FinishedExecution.objects.filter(finished_at__range=(begin, end))
    spans = ended.values_list("job__enqueued_at", "finished_at")
    cuts = quantiles([(b - a).total_seconds() for a, b in spans.iterator()], n=100)
    return f"p50 {1000 * cuts[49]:.0f} ms, p99 {1000 * cuts[98]:.0f} ms"


def rss(pid):
    """The memory of a process, in megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * PAGE / 1e6
