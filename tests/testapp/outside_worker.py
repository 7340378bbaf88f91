"""A worker outside: it knows an address and a token, and has no Django settings.

What it does is told in the file of a witness, as tests.testapp.witnessed_tasks does.
"""

import os
import sys
import time

from robust_queue.client import Client, Worker

client = Client(os.environ["QUEUE_URL"], os.environ["QUEUE_TOKEN"])
worker = Worker(
    client,
    queues=os.environ["QUEUE_NAMES"].split(","),
    concurrency=int(os.environ.get("QUEUE_CONCURRENCY", "3")),
    name="python",
    wait=2,
)


def tell(event, label):
    line = f"{event} {label} {os.getpid()} {time.monotonic():.6f}\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    descriptor = os.open(os.environ["RQ_WITNESS"], flags, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


@worker.task("outside-add")
def add(job, first, second):
    return first + second


@worker.task("outside-noted")
@worker.task("outside-limited")
@worker.task("tests.testapp.outside_tasks.noted_by_anybody")
@worker.task("tests.testapp.outside_tasks.limited_for_anybody")
def note(job, label, seconds, key=""):
    tell("begins", label)
    job.wait(seconds)
    tell("ends", label)


if __name__ == "__main__":
    assert "django" not in sys.modules
    worker.run()
