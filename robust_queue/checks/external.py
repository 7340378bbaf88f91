"""Queues of external tasks: who would wait there in vain."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.core.checks import CheckMessage

from robust_queue import configuration, registry
from robust_queue.aliases import is_ours

from . import messages


def check_external_tasks(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Judge who else is in the queues of external tasks: tasks, and workers."""
    if configuration.problems():
        return []  # it cannot be told where to look
    return [*_judge_tasks(), *_judge_workers()]


def to_be_served(queues: Iterable[str]) -> list[str]:
    """Those of the queues that are not served by workers outside, by name."""
    return sorted(set(queues) - registry.external_queues())


def _judge_tasks() -> Iterator[CheckMessage]:
    external = registry.external_queues()
    for path, task in sorted(registry.declared().items()):
        is_there = task.queue_name in external and not registry.is_external(task)
        if is_there and is_ours(task.get_backend()):
            yield messages.never_taken(path, task.queue_name)


def _judge_workers() -> Iterator[CheckMessage]:
    external = registry.external_queues()
    for index, worker in enumerate(configuration.current().effective_workers):
        path = f"{configuration.path_of('workers')}[{index}]"
        for queue in worker.queues:
            if queue in external:
                yield messages.external_queue_named(path, queue)
