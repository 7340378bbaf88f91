"""Tasks for supervisors that tests start. What they do is told by rows of Mark."""

import os
import sys
import time
from multiprocessing import get_context

from robust_queue import exponential, task
from tests.testapp.models import Mark

SOON = exponential(0.2, jitter=0)


def leave_mark(label):
    Mark.objects.create(label=label, pid=os.getpid())


@task
def nothing():
    return None


@task
def mark(label):
    leave_mark(label)


@task
def rest(label, seconds):
    """Tells when it begins and when it ends."""
    leave_mark(f"{label} begins")
    time.sleep(seconds)
    leave_mark(f"{label} ends")
    return label


@task(max_attempts=5, backoff=SOON)
def rest_again(label, seconds):
    """The same, and runs again if its process dies."""
    rest.func(label, seconds)


@task
def fail(label):
    leave_mark(label)
    raise ValueError(label)


@task
def exit_at_once(code):
    os._exit(code)


@task(max_attempts=3, backoff=SOON)
def exit_every_time(label):
    leave_mark(label)
    os._exit(7)


@task
def leave_politely():
    sys.exit(3)


@task
def recurse():
    recurse.func()


@task
def hold_on_to_the_interpreter(seconds):
    """Nothing else runs in this process meanwhile, not even its heart."""
    sys.setswitchinterval(3600)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@task
def grow(mebibytes):
    """Leaks memory, as libraries do."""
    leaked.append(bytearray(os.urandom(1024)) * 1024 * mebibytes)


leaked = []


@task
def end_a_pool(rounds):
    """Programs that a task forks heed TERM, which is how pools of processes end."""
    for _ in range(rounds):
        with get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1, 2]) == [1, 2]
    return rounds
