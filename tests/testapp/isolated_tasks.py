"""Tasks that run in processes of their own, and do their worst there."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

from asgiref.sync import sync_to_async
from django.utils import timezone, translation

from robust_queue import current_job
from robust_queue import task as any_task
from robust_queue.exceptions import Discard, Snooze
from tests.testapp.process_tasks import SOON, leave_mark

task = partial(any_task, isolation="process")


@task()
def whoami():
    return os.getpid()


@any_task
def whoami_in_a_thread():
    return os.getpid()


@task()
def group():
    return [os.getpid(), os.getpgid(0), os.getsid(0)]


@task()
def surroundings():
    job = current_job()
    zone = timezone.get_current_timezone_name()
    return [job.task, job.attempt, translation.get_language(), zone]


@task()
async def whoami_async():
    await asyncio.sleep(0)
    return await sync_to_async(os.getpid)()


@task(timeout=0.5)
async def sleep_async():
    await asyncio.sleep(3600)


@task()
def fail(text):
    raise ValueError(text)


@task()
def snooze(reason):
    raise Snooze(reason, until=timedelta(hours=1))


@task()
def discard(reason):
    raise Discard(reason)


@task()
def mark(label):
    leave_mark(label)


@task()
def segfault():
    ctypes.string_at(0)


@task()
def exit_with(code):
    os._exit(code)


@task(on_crash="retry", backoff=SOON)
def exit_and_retry(label):
    leave_mark(label)
    os._exit(1)


@task()
def kill_oneself():
    os.kill(os.getpid(), signal.SIGKILL)


@task()
def leave_politely():
    sys.exit(3)


@task(timeout=0.5)
def loop_for_ever():
    leave_mark("loops")
    while True:
        pass


@task(timeout=0.5)
def hold_on_to_the_interpreter():
    """Not even a handler of a signal has a turn."""
    leave_mark("holds on")
    sum(range(10**12))


@task(timeout=0.5)
def sleep_for_ever():
    time.sleep(3600)


# Long enough to begin, also on a machine that is busy with other things.
@task(timeout=2)
def clean_up(path):
    try:
        time.sleep(3600)
    finally:
        Path(path).write_text("cleaned up")


@task(timeout=0.5)
def ignore_terms():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    leave_mark("ignores")
    time.sleep(3600)


@task(timeout=0.5, retry_on=(ValueError,), max_attempts=3, backoff=SOON)
def too_long_and_not_retried():
    time.sleep(3600)


@task()
def sleep(seconds):
    leave_mark("sleeps")
    time.sleep(seconds)
    leave_mark("slept")


@task(max_attempts=3, backoff=SOON)
def sleep_again(seconds):
    sleep.func(seconds)


@task(takes_context=True)
def until_cancelled(context):
    leave_mark("waits")
    while not context.cancelled:
        time.sleep(0.01)
    leave_mark("noticed")
    context.check_cancelled()


@task()
def leave_a_child():
    child = subprocess.Popen(["sleep", "3600"])
    return child.pid


@task()
def leave_a_daemon(path):
    """Forked twice, in a session of its own: nobody would find it by its group."""
    if not os.fork():
        os.setsid()
        if not os.fork():
            Path(path).write_text(str(os.getpid()))
            time.sleep(3600)
        os._exit(0)
    os.wait()
    while not Path(path).exists() or not Path(path).read_text():
        time.sleep(0.01)


@task(timeout=2)
def sleep_beside_a_daemon(path):
    leave_a_daemon.func(path)
    time.sleep(3600)


@task()
def daemon_and_sleep(path):
    leave_a_daemon.func(path)
    leave_mark("daemon")
    time.sleep(3600)


@task()
def leave_a_thread():
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    return os.getpid()


@task()
def eat(mebibytes):
    return len(bytearray(mebibytes * 1024 * 1024))


@task()
def compute():
    while True:
        pass


@task()
def write(text, times):
    for _ in range(times):
        print(text)
    print("to stderr", file=sys.stderr)
    subprocess.run(["echo", "from a child"], check=True)


@task()
def write_and_die():
    print("last words")
    os.kill(os.getpid(), signal.SIGSEGV)


@task()
def nothing():
    return None


class MuteError(Exception):
    """Cannot even say what is wrong."""

    def __str__(self):
        raise RuntimeError


@task()
def close_what_it_writes_to():
    sys.stdout.close()
    return "done"


@task()
def fail_without_a_word():
    raise MuteError
