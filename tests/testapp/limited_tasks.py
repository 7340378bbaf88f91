"""Tasks of which only so many may run at a time, and that tell if more do.

Each run takes a place in a ledger that the queue knows nothing of: a lock on a file of
its own, released by the kernel however its process ends. So neither a miscount of the
queue nor a killed process can falsify it.
"""

import asyncio
import fcntl
import os
import time
from datetime import timedelta
from pathlib import Path

from robust_queue import Concurrency, limits_concurrency, task
from tests.testapp.witnessed_tasks import VARIABLE, at_once, tell


@task(concurrency=Concurrency(key=lambda account, *rest: account))
def one_by_account(account, label=""):
    return label


@task(concurrency=Concurrency(key=lambda account: account, limit=2))
def two_by_account(account):
    return account


@task(concurrency=Concurrency(key="only", on_conflict="discard"))
def only_one(label=""):
    return label


@limits_concurrency(key=lambda account: account, to=1, group="accounts")
@task
def close_account(account):
    return account


@task(queue_name="mail")
@limits_concurrency(key=lambda account, text: account, group="accounts")
def write_to_account(account, text):
    return text


@task(
    concurrency=[
        Concurrency(key=lambda tenant: tenant, group="tenant"),
        Concurrency(key="all", limit=2, group="everywhere"),
    ]
)
def two_of_one_tenant_each(tenant):
    return tenant


@task(
    concurrency=Concurrency(key="flaky"),
    max_attempts=2,
    backoff=lambda error, attempt: timedelta(0),
)
def fail_at_first(label):
    raise ValueError(label)


@task(concurrency=Concurrency(key=lambda keys: keys))
def by_keys(keys):
    return keys


@task(concurrency=Concurrency(key=lambda value: 1 / value))
def by_division(value):
    return value


@task(
    concurrency=Concurrency(key=lambda label, seconds, key: key, limit=1),
    max_attempts=1000,
    backoff=at_once,
)
def counted_once(label, seconds, key):
    """Runs again if its process dies, and never beside another one of its key."""
    in_ledger(key, 1, label, seconds)


@task(
    concurrency=Concurrency(key=lambda label, seconds, key: key, limit=3),
    max_attempts=1000,
    backoff=at_once,
)
def counted_thrice(label, seconds, key):
    """Likewise, with up to two others."""
    in_ledger(f"three-{key}", 3, label, seconds)


def in_ledger(key, limit, label, seconds):
    places = [Path(f"{os.environ[VARIABLE]}.{key}.{i}") for i in range(limit)]
    for place in places:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        try:
            tell("begins", label)
            time.sleep(seconds)
            tell("ends", label)
        finally:
            os.close(descriptor)
        return
    tell("overlaps", label)


RUNNING: list[str] = []
SEEN_TOGETHER: list[tuple[str, ...]] = []


@task(concurrency=Concurrency(key="hot", group="hot"))
def hot(label, seconds=0.0):
    """Notes who else runs, in this very process."""
    _enter(label)
    time.sleep(seconds)
    RUNNING.remove(label)


@task(concurrency=Concurrency(key="hot", group="hot"))
async def hot_async(label, seconds=0.0):
    _enter(label)
    await asyncio.sleep(seconds)
    RUNNING.remove(label)


@task(concurrency=Concurrency(key="hot", group="hot"))
def hot_and_failing(label):
    raise ValueError(label)


def _enter(label):
    RUNNING.append(label)
    if len(RUNNING) > 1:
        SEEN_TOGETHER.append(tuple(RUNNING))


def limited(label, seconds):
    """A call that tells if more than its limit run at a time."""
    number = int(label.rpartition("-")[2])
    task = counted_thrice if number % 3 else counted_once
    return task.bind(label, seconds / 3, f"key-{number % 5}")
