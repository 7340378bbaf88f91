"""Tasks that fail in every way, or say how it goes on with them."""

import asyncio
import time
from contextlib import suppress
from datetime import timedelta

from robust_queue import Discard, Retry, Snooze, TaskTimeout, exponential, task
from robust_queue.context import check_cancelled, is_cancelled
from tests.testapp.models import Mark
from tests.testapp.process_tasks import leave_mark

SOON = exponential(0.2, jitter=0)

ERRORS = {"os": OSError, "key": KeyError, "time": TimeoutError, "late": TaskTimeout}


@task(max_attempts=3, retry_on=(OSError,), discard_on=KeyError)
def choose(error):
    """A TimeoutError of its own is an OSError; that of its timeout is not one here."""
    raise ERRORS[error](error)


@task(max_attempts=3, retry_on=(TaskTimeout,))
def try_again_when_late():
    raise TaskTimeout("late")


@task(discard_on=TaskTimeout)
def be_dropped_when_late():
    raise TaskTimeout("late")


@task(retry_on=OSError, max_attempts=3)
def ask_again(after=None):
    raise Retry("not yet", after=after)


@task
def ask_again_undeclared():
    raise Retry


@task(takes_context=True)
def sleep_on_it(context, times, seconds=60):
    """Is put off so many times, by Mark's count."""
    Mark.objects.create(label="asleep", pid=context.attempt)
    if Mark.objects.filter(label="asleep").count() <= times:
        raise Snooze("too early", until=timedelta(seconds=seconds))
    return context.attempt


@task
def sleep_until(moment):
    raise Snooze(until=moment)


@task
def give_it_up():
    raise Discard("of no use any more")


@task(deadline=timedelta(hours=1), max_attempts=5, backoff=[60, 7200])
def hurry():
    raise OSError("not now")


@task
def declare_nothing():
    raise OSError("not now")


@task(keep_result=0)
def leave_no_trace():
    return "nothing"


# ── For workers ────────────────────────────────────────────────────────────────


@task(timeout=0.3)
def loop_for_ever(label="loop"):
    """Python code can be interrupted anywhere."""
    leave_mark(f"{label} begins")
    while True:
        pass


@task(timeout=0.3)
def swallow_everything(label="swallow"):
    leave_mark(f"{label} begins")
    ends = time.monotonic() + 1.5
    while time.monotonic() < ends:
        try:
            while time.monotonic() < ends:
                pass
        except BaseException:  # noqa: S112 (that is the point)
            continue
    return "done"


@task(timeout=0.5)
def sleep_in_c(seconds, label="sleep"):
    """Not a line of Python runs meanwhile."""
    leave_mark(f"{label} begins")
    time.sleep(seconds)
    leave_mark(f"{label} ends")


@task(timeout=0.5, max_attempts=2, backoff=SOON, retry_on=TaskTimeout)
def sleep_in_c_again(seconds):
    leave_mark("again begins")
    time.sleep(seconds)


@task(timeout=30)
def be_quick(n):
    return n


@task(timeout=0.3)
async def wait_for_ever():
    await asyncio.sleep(3600)


@task(timeout=0.3)
async def insist_on_waiting():
    while True:
        try:
            await asyncio.sleep(0.5)
        except asyncio.CancelledError:
            return "after all"


@task(takes_context=True)
def wait_to_be_cancelled(context, label="wait"):
    leave_mark(f"{label} begins")
    while True:
        time.sleep(0.02)
        context.check_cancelled()


@task
def wait_without_context():
    leave_mark("wait begins")
    while True:
        time.sleep(0.02)
        check_cancelled()


@task(takes_context=True)
def finish_although_cancelled(context):
    leave_mark("stubborn begins")
    while not context.cancelled:
        time.sleep(0.02)
    return "finished"


@task
async def wait_in_a_coroutine():
    await Mark.objects.acreate(label="coroutine begins", pid=0)
    await asyncio.sleep(3600)


@task(takes_context=True)
async def ask_whether_it_is_cancelled(context):
    """Not where it waits: it looks for itself, and catches what it is told."""
    await Mark.objects.acreate(label="asking begins", pid=0)
    while not (context.cancelled and is_cancelled()):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.02)
    return "seen"
