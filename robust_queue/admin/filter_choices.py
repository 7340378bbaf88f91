"""What the filters of jobs propose. Anything else can be typed in as well."""

from collections.abc import Callable, Iterable

from robust_queue import registry
from robust_queue.lifecycle.queues import queue_names
from robust_queue.models import FailedExecution, Job, Process, RecurringTask
from robust_queue.models.processes import WORKING

# The latest rows tell what there is to choose from.
LOOKED_AT = 1_000
# A browser proposes no more than fit on a screen.
PROPOSED = 200


def _queues(database: str) -> Iterable[str]:
    return queue_names(database)


def _tasks(database: str) -> Iterable[str]:
    """Those that are declared here, and those that were enqueued lately."""
    latest = Job.objects.using(database).order_by("-pk")
    paths = latest.values_list("task_path", flat=True)[:LOOKED_AT]
    return {*registry.declared(), *paths}


def _errors(database: str) -> Iterable[str]:
    latest = FailedExecution.objects.using(database).order_by("-finished_at")
    return set(latest.values_list("exception_class", flat=True)[:LOOKED_AT])


def _workers(database: str) -> Iterable[str]:
    workers = Process.objects.using(database).filter(kind__in=WORKING)
    return workers.order_by("name").values_list("name", flat=True)[:PROPOSED]


def _recurring(database: str) -> Iterable[str]:
    tasks = RecurringTask.objects.using(database).order_by("key")
    return tasks.values_list("key", flat=True)[:PROPOSED]


def _proposed(find: Callable[[str], Iterable[str]]) -> Callable[[str], list[str]]:
    return lambda database: sorted(find(database))[:PROPOSED]


CHOICES = {
    "queues": _proposed(_queues),
    "tasks": _proposed(_tasks),
    "errors": _proposed(_errors),
    "workers": _proposed(_workers),
    "recurring": _proposed(_recurring),
}
