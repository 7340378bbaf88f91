"""Tasks that tell what they do in a file, whatever becomes of their database.

Each event is one line, written by one system call at the end of the file: neither the
death of a process nor other writers can tear it.
"""

import os
import sys
import time
from datetime import timedelta
from importlib import import_module
from pathlib import Path

from django.conf import settings
from django.db import connection

from robust_queue import task
from tests.testapp.models import Mark

VARIABLE = "RQ_WITNESS"


def at_once(exception, attempt):
    return timedelta(milliseconds=50)


def hurry_path():
    return Path(f"{os.environ[VARIABLE]}.hurry")


def tell(event, label):
    line = f"{event} {label} {os.getpid()} {time.monotonic():.6f}\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    descriptor = os.open(os.environ[VARIABLE], flags, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


@task
def once(label, seconds=0.0):
    """Fails if its process dies."""
    tell("begins", label)
    time.sleep(seconds)
    tell("ends", label)


@task(max_attempts=1000, backoff=at_once)
def again(label, seconds=0.0):
    """Runs again if its process dies."""
    once.func(label, seconds)


@task(max_attempts=1000, backoff=at_once)
def long_at_first(label, seconds):
    """Runs again if its process dies, and then not for long."""
    been_here = Path(f"{os.environ[VARIABLE]}.{label}")
    is_first = not been_here.exists()
    been_here.touch()
    once.func(label, seconds if is_first else 0.0)


@task(max_attempts=1000, backoff=at_once)
def store(label):
    """Uses the database, so that it may fail with it, and is tried again."""
    tell("begins", label)
    Mark.objects.create(label=label, pid=os.getpid())
    tell("ends", label)


@task(rate_limit="100/s")
def limited(label):
    """Begins a hundred times a second, and no more."""
    tell("begins", label)


@task
def store_once(label):
    """Uses the database, and fails with it."""
    Mark.objects.create(label=label, pid=os.getpid())


@task
def tell_session(label):
    """Tells which session of the server its queries are part of."""
    asked = (
        "pg_backend_pid()" if connection.vendor == "postgresql" else "CONNECTION_ID()"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {asked}")
        (session,) = cursor.fetchone()
    Mark.objects.create(label=f"{label} {session}", pid=os.getpid())


@task
def turn_read_only():
    """Leaves behind a session as a server does that has lost its role."""
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")


@task
def alone(label, seconds, *, is_deaf=False):
    """Tells if another run of it is still under way in a process that lives.

    It takes long, unless it is to hurry.
    """
    own = Path(f"{os.environ[VARIABLE]}.{label}.{os.getpid()}")
    own.write_text(str(os.getpid()))
    lock = Path(f"{os.environ[VARIABLE]}.{label}.lock")
    while not _is_taken(lock, own):
        if Path("/proc", lock.read_text()).exists():
            tell("overlaps", label)
        lock.unlink()
    tell("begins", label)
    if not hurry_path().exists():
        (_hold_on_to_the_interpreter if is_deaf else time.sleep)(seconds)
    tell("ends", label)
    lock.unlink()


def _is_taken(lock, own):
    try:
        os.link(own, lock)
    except FileExistsError:
        return False
    return True


def _hold_on_to_the_interpreter(seconds):
    """No handler of this process hears a signal meanwhile."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(3600)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    sys.setswitchinterval(interval)


def _tell_of_end(sender, task_result, **kwargs):
    tell("announced", task_result.args[0])


if VARIABLE in os.environ:
    signals = import_module(f"{settings.TASKS_PACKAGE}.signals")
    signals.task_finished.connect(_tell_of_end)
