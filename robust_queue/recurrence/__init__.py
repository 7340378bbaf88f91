"""Declaring that a task recurs: ``@recurring``, the settings, and what they declare.

The package is not called ``recurring``: it would hide the decorator of that name.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from robust_queue import configuration, registry
from robust_queue.compat import AnyTask
from robust_queue.recurring_settings import MISSED_LIMIT

from .recurrences import (
    ON_MISSED,
    OVERLAPS,
    OnMissed,
    Overlap,
    Recurrence,
    recurrence_of,
)
from .refusals import MOST_MISSED

__all__ = [
    "MISSED_LIMIT",
    "MOST_MISSED",
    "ON_MISSED",
    "OVERLAPS",
    "OnMissed",
    "Overlap",
    "Recurrence",
    "Trouble",
    "declared",
    "recurrence_of",
    "recurring",
    "troubles",
]

T = TypeVar("T", bound=AnyTask)

_declared: list[Recurrence] = []


def recurring(
    *,
    schedule: str | timedelta,
    key: str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None,
    priority: int | None = None,
    timezone: str | None = None,
    description: str = "",
    enabled: bool = True,
    on_missed: OnMissed = "run_once",
    missed_limit: int = MISSED_LIMIT,
    overlap: Overlap = "allow",
    jitter: timedelta | float = 0,
) -> Callable[[T], T]:
    """Declare that a task recurs; stands above ``@task``, as often as needed.

    ``key`` names the recurring task among all of the project. Unset queue and priority
    are those of the task, which is returned as it was; an unset time zone is Django's.
    Instants that nobody was there for are made up for by one run unless ``on_missed``
    says otherwise. ``overlap`` is about a run whose predecessor is not over yet.
    """
    caller = sys._getframe(1)
    place = f"{caller.f_globals.get('__name__', '?')}:{caller.f_lineno}"

    def declare(task: T) -> T:
        made = recurrence_of(
            task,
            schedule=schedule,
            key=key,
            args=args,
            kwargs=kwargs,
            queue_name=queue_name,
            priority=priority,
            timezone=timezone,
            description=description,
            enabled=enabled,
            on_missed=on_missed,
            missed_limit=missed_limit,
            overlap=overlap,
            jitter=jitter,
            place=place,
        )
        _remember(made)
        return task

    return declare


def declared() -> list[Recurrence]:
    """All that recurs, in code and settings. Looks wherever tasks may be declared.

    Keys are unique unless the project has a mistake, which a system check reports. So
    it does with what stands in the settings and makes no sense, which is left out.
    """
    registry.discover()
    found = [each for each in _in_settings() if isinstance(each, Recurrence)]
    return [*_declared, *found]


class Trouble(NamedTuple):
    """A recurring task of the settings that cannot be."""

    path: str
    error: Exception


def troubles() -> list[Trouble]:
    """What stands in the settings and makes no sense."""
    registry.discover()
    return [each for each in _in_settings() if isinstance(each, Trouble)]


def _in_settings() -> list[Recurrence | Trouble]:
    place = configuration.path_of("recurring_tasks")
    written = configuration.current().recurring_tasks
    return [_read(f"{place}[{key!r}]", key, each) for key, each in written.items()]


def _read(path: str, key: str, written: Any) -> Recurrence | Trouble:
    try:
        task = registry.resolve(written.task)
        return recurrence_of(task, key=key, place=path, **written.options)
    except Exception as error:
        return Trouble(path, error)


def _remember(recurrence: Recurrence) -> None:
    _declared[:] = [each for each in _declared if not each.is_again(recurrence)]
    _declared.append(recurrence)
