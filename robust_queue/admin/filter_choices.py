"""What the filters of jobs propose. Anything else can be typed in as well."""

from collections.abc import Callable, Iterable

from django.db import router

from robust_queue import registry
from robust_queue.lifecycle.queues import queue_names
from robust_queue.models import FailedExecution, Job, Process, RecurringTask

# The latest rows tell what there is to choose from.
LOOKED_AT = 1_000
# A browser proposes no more than fit on a screen.
PROPOSED = 200


def _queues() -> Iterable[str]:
    return queue_names(router.db_for_read(Job))


def _tasks() -> Iterable[str]:
    """Those that are declared here, and those that were enqueued lately."""
    latest = Job.objects.order_by("-pk").values_list("task_path", flat=True)
    return {*registry.declared(), *latest[:LOOKED_AT]}


def _errors() -> Iterable[str]:
    latest = FailedExecution.objects.order_by("-finished_at")
    return set(latest.values_list("exception_class", flat=True)[:LOOKED_AT])


def _workers() -> Iterable[str]:
    workers = Process.objects.filter(kind="Worker")
    return workers.order_by("name").values_list("name", flat=True)[:PROPOSED]


def _recurring() -> Iterable[str]:
    tasks = RecurringTask.objects.order_by("key")
    return tasks.values_list("key", flat=True)[:PROPOSED]


def _proposed(find: Callable[[], Iterable[str]]) -> Callable[[], list[str]]:
    return lambda: sorted(find())[:PROPOSED]


CHOICES = {
    "queues": _proposed(_queues),
    "tasks": _proposed(_tasks),
    "errors": _proposed(_errors),
    "workers": _proposed(_workers),
    "recurring": _proposed(_recurring),
}
