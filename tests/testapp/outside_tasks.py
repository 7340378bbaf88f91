"""Tasks that workers outside perform, and some that anybody may."""

from datetime import timedelta

from robust_queue import Concurrency, external_task, task
from tests.testapp.witnessed_tasks import at_once, once

LIMIT = 2
PATIENT = {"max_attempts": 1000, "backoff": at_once}


def _by_key(label, seconds, key):
    return key


add = external_task("outside-add", queue_name="outside")
big = external_task("outside-big", queue_name="outside")
fragile = external_task(
    "outside-fragile", queue_name="outside", max_attempts=2, backoff=at_once
)
hasty = external_task(
    "outside-hasty", queue_name="outside", timeout=timedelta(seconds=30)
)
brief = external_task("outside-brief", queue_name="outside", timeout=2)
noted = external_task("outside-noted", queue_name="outside", **PATIENT)
limited = external_task(
    "outside-limited",
    queue_name="outside",
    signature=_by_key,
    concurrency=Concurrency(key=_by_key, group="outside", limit=LIMIT),
    **PATIENT,
)
EXTERNAL = (add, big, fragile, hasty, brief, noted, limited)


@task(queue_name="anybody", **PATIENT)
def noted_by_anybody(label, seconds):
    """Workers of our own take it, and others do."""
    once.func(label, seconds)


@task(
    queue_name="anybody",
    concurrency=Concurrency(key=_by_key, group="outside", limit=LIMIT),
    **PATIENT,
)
def limited_for_anybody(label, seconds, key):
    """Never beside more than one other of its key, whoever performs that."""
    once.func(label, seconds)
