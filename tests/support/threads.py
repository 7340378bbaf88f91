"""Second connections: code that runs in another thread, and a way to take turns."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from django.db import connections, transaction

PATIENCE = 30


def in_thread(function, *args, **kwargs):
    """Call a function on a connection of its own and wait for what it returns."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_closing, function, args, kwargs).result(PATIENCE)


def in_threads(functions):
    """Call functions at the same time, each on a connection of its own."""
    barrier = threading.Barrier(len(functions))

    def together(function):
        barrier.wait(PATIENCE)
        return function()

    with ThreadPoolExecutor(len(functions)) as pool:
        waiting = [pool.submit(_closing, together, (f,), {}) for f in functions]
        return [each.result(PATIENCE) for each in waiting]


@contextmanager
def uncommitted(function, *args, using="default", **kwargs):
    """Another connection has done this and not committed yet, until the block ends."""
    done, leave = threading.Event(), threading.Event()
    outcome = []

    def hold():
        with transaction.atomic(using=using):
            outcome.append(function(*args, **kwargs))
            done.set()
            assert leave.wait(PATIENCE)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(_closing, hold, (), {})
        done.wait(PATIENCE) or future.result(0)
        try:
            yield outcome[0]
        finally:
            leave.set()
            future.result(PATIENCE)


def started(function, *args, **kwargs):
    """Begin a call on another connection; the caller asks the future later."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(_closing, function, args, kwargs)
    pool.shutdown(wait=False)
    return future


def _closing(function, args, kwargs):
    try:
        return function(*args, **kwargs)
    finally:
        connections.close_all()
