"""``manage.py robust_queue workers``: who is alive, and what it does."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper

from robust_queue.lifecycle.workers import WorkerStatus, workers

from .tables import table

HELP = "list live workers: their queues, their threads, and how busy they are"

TITLES = ("WORKER", "HOST", "QUEUES", "THREADS", "BUSY", "MEMORY", "TUNED")
MEGABYTE = 1024 * 1024


def add_arguments(parser: ArgumentParser) -> None:
    """There is nothing to choose."""


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """List them."""
    found = workers(database)
    if not found:
        out.write("No worker is alive.")
        return
    rows = [
        (
            each.name,
            each.hostname,
            ",".join(each.queues),
            "" if each.threads is None else each.threads,
            each.busy,
            "" if each.memory is None else f"{each.memory / MEGABYTE:.0f} MB",
            ", ".join(_tuned(each)),
        )
        for each in found
    ]
    for line in table(TITLES, rows):
        out.write(line)


def _tuned(worker: WorkerStatus) -> list[str]:
    # Quiet because of its household, it has no such wish of its own.
    own = [each for each in worker.tuned if each != "quiet"]
    return ["quiet", *own] if worker.is_quiet else own
