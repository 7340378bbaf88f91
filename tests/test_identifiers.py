"""Job ids: ordered like time, never repeated, whatever the clock and forks do."""

import os
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from uuid import RFC_4122

import pytest
from django.utils import timezone

from robust_queue import identifiers
from robust_queue.identifiers import new_job_id
from robust_queue.models import ReadyExecution


def milliseconds(job_id):
    return job_id.int >> 80


def _make(count):
    return [new_job_id() for _ in range(count)]


def test_they_are_version_seven():
    job_id = new_job_id()
    assert (job_id.version, job_id.variant) == (7, RFC_4122)


def test_they_tell_the_time():
    before = time.time_ns() // 1_000_000
    # Earlier tests may have counted on into the near future.
    assert before - 1 <= milliseconds(new_job_id()) <= before + 1000


def test_they_ascend_within_a_process():
    made = [new_job_id() for _ in range(20_000)]
    assert made == sorted(set(made))


def test_they_ascend_when_the_clock_steps_back(monkeypatch):
    first = new_job_id()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    made = [first, *(new_job_id() for _ in range(5_000))]
    assert made == sorted(set(made))


def test_threads_share_one_sequence():
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(_make, 500) for _ in range(16)]
        made = [job_id for call in calls for job_id in call.result()]
    assert len(set(made)) == len(made)


def test_a_child_repeats_nothing_and_is_not_stuck():
    """The parent's lock is held by a thread that the child does not have."""
    held, leave = threading.Event(), threading.Event()

    def hold():
        with identifiers._sequence.lock:
            held.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    reading, writing = os.pipe()
    child = _fork_quietly()
    if child == 0:
        try:
            os.write(writing, new_job_id().bytes)
        finally:
            os._exit(0)
    leave.set()
    thread.join()
    os.close(writing)
    told = os.read(reading, 16)
    os.close(reading)
    os.waitpid(child, 0)
    assert len(told) == 16
    assert told != new_job_id().bytes


def _fork_quietly():
    # Python warns of forks beside threads, which are what this test is about.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


@pytest.mark.django_db
def test_the_database_sorts_them_like_python():
    made = [new_job_id() for _ in range(300)]
    rows = [
        ReadyExecution(job_id=i, queue_name="q", priority=0, created_at=timezone.now())
        for i in reversed(made)
    ]
    ReadyExecution.objects.bulk_create(rows)
    stored = ReadyExecution.objects.order_by("job_id").values_list("job_id", flat=True)
    assert list(stored) == made
