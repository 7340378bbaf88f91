"""``manage.py robust_queue queues``: what is in each queue, and which are paused."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper
from django.utils import timezone

from robust_queue.lifecycle.queues import QueueStatus, queues_in_full
from robust_queue.models import TaskPause
from robust_queue.models.queues import in_force

from .tables import length, moment, table

HELP = "list queues: what waits in them, for how long, and which are paused"

TITLES = ("QUEUE", "READY", "SCHEDULED", "BLOCKED", "RUNNING", "LATENCY", "PAUSED")


def add_arguments(parser: ArgumentParser) -> None:
    """There is nothing to choose."""


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """List them, and the tasks that are paused."""
    found = queues_in_full(database)
    if not found:
        out.write("No queue has jobs, is paused, or is named in the settings.")
    for line in table(TITLES, map(_row, found)) if found else ():
        out.write(line)
    pauses = TaskPause.objects.using(database).filter(in_force(timezone.now()))
    for path, until in pauses.order_by("pk").values_list("pk", "until"):
        out.write(f"Task {path} is paused{_until(until)}.")


def _row(status: QueueStatus) -> tuple[object, ...]:
    paused = _until(status.paused_until).strip() or "paused"
    return (
        status.name,
        status.ready,
        status.scheduled,
        status.blocked,
        status.running,
        length(status.latency) if status.ready else "",
        paused if status.is_paused else "",
    )


def _until(end: Any) -> str:
    return f" until {moment(end)}" if end else ""
