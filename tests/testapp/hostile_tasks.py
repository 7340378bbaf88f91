"""Tasks that do what no task should, for supervisors that tests start."""

import multiprocessing
import os
import resource
import time
from contextlib import suppress
from pathlib import Path

from robust_queue import task
from tests.testapp.process_tasks import SOON, leave_mark


@task
def exit_with(code):
    leave_mark(f"exit {code}")
    os._exit(code)


@task(on_crash="retry", backoff=SOON)
def exit_and_retry(label):
    leave_mark(label)
    os._exit(1)


@task(on_crash="fail", max_attempts=5, backoff=SOON)
def exit_and_fail(label):
    leave_mark(label)
    os._exit(1)


@task
def signal_oneself(number):
    leave_mark(f"signal {number}")
    os.kill(os.getpid(), number)
    time.sleep(60)


@task
def interrupt():
    raise KeyboardInterrupt("Somebody pressed a key, or so it looks.")


@task
def leave_generator():
    raise GeneratorExit


class Unspeakable(BaseException):
    def __str__(self):
        raise SystemExit(4)


@task
def raise_the_unspeakable():
    raise Unspeakable


@task
def eat_memory(*bites):
    """Eats all there is. The limit stays: the process has to live with it."""
    leave_mark("eat")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_in_use() + 200 * 2**20, hard))
    eaten = []
    for bite in bites[:-1]:
        _eat(eaten, bite)
    while True:
        eaten.append(bytearray(bites[-1]))


def _eat(eaten, bite):
    with suppress(MemoryError):
        while True:
            eaten.append(bytearray(bite))


def _in_use():
    with open("/proc/self/statm") as statm:  # noqa: PTH123
        return int(statm.read().split()[0]) * resource.getpagesize()


@task
def tell(label):
    """Tells that it ran, and returns what it was given."""
    leave_mark(label)
    return {"label": label}


@task
def wait_for(path):
    """Ends when the file is gone."""
    leave_mark("begins")
    while Path(path).exists():
        time.sleep(0.02)
    leave_mark("ends")


@task
def have_a_child():
    """Forks a process of its own, and ends it as multiprocessing does."""
    here, there = multiprocessing.Pipe()
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=_tell_and_sleep, args=(there,))
    child.start()
    here.recv()
    child.terminate()
    child.join()


def _tell_and_sleep(there):
    there.send("up")
    time.sleep(60)


@task(max_attempts=3, backoff=SOON)
def fail_once(label):
    """Fails in its first attempt only, as far as its marks tell."""
    from tests.testapp.models import Mark

    is_first = not Mark.objects.filter(label=label).exists()
    leave_mark(label)
    if is_first:
        raise ValueError(label)


@task(max_attempts=5, backoff=SOON)
def tick(label, seconds):
    """Tells that it runs, all the time; runs again if its process dies."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        leave_mark(label)
        time.sleep(0.02)
