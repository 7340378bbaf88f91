"""Limits that contradict each other."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage

from robust_queue import configuration, registry

from . import messages


def check_limits(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Judge the groups that tasks share: how many may run at a time is for all."""
    if configuration.problems():
        return []  # it cannot be told where to look
    declared = defaultdict[str, dict[str, int]](dict)
    for path, group, limit in _groups():
        declared[group][path] = limit
    return [
        messages.limits_disagree(group, limits)
        for group, limits in sorted(declared.items())
        if len(set(limits.values())) > 1
    ]


def _groups() -> Iterator[tuple[str, str, int]]:
    for path, task in sorted(registry.discover().items()):
        for each in getattr(task, "concurrency", None) or ():
            if each.group:
                yield path, each.group, each.limit
