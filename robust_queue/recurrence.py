"""Declaring that a task recurs: the decorator ``@recurring`` and what it has declared.

The module is not called ``recurring``: it would hide the decorator of that name in the
package.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeGuard, TypeVar

from . import registry
from .arguments import dump_call
from .compat import AnyTask, is_task
from .schedules import Schedule

T = TypeVar("T", bound=AnyTask)

# What the columns hold.
KEY_LENGTH = 255
SCHEDULE_LENGTH = 255
TASK_PATH_LENGTH = 255
QUEUE_NAME_LENGTH = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """A task, its schedule, and the arguments that it is to be called with."""

    key: str
    task: AnyTask
    schedule: Schedule
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any]
    # None: the task's own.
    queue_name: str | None = None
    priority: int | None = None
    # Module and line, for messages.
    place: str

    def __post_init__(self) -> None:
        _check_key(self.key)
        _check_schedule(self.schedule)
        _check_task(self.task)
        _check_call(self.task, self.args, self.kwargs)
        _check_queue(self.task, self.queue_name, self.priority)

    def is_again(self, other: "Recurrence") -> bool:
        """Is this the same declaration, from a module that was imported again?"""
        return self._identity() == other._identity()

    def _identity(self) -> tuple[Any, ...]:
        # Not the task itself: the second import has made another one of that path.
        call = self.task.module_path, self.args, self.kwargs
        row = self.key, self.schedule, self.queue_name, self.priority
        return call, row, self.place


_declared: list[Recurrence] = []


def recurring(
    *,
    schedule: str,
    key: str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None,
    priority: int | None = None,
) -> Callable[[T], T]:
    """Declare that a task recurs; stands above ``@task``, as often as needed.

    ``key`` names the recurring task among all of the project. Unset queue and priority
    are those of the task, which is returned as it was.
    """
    parsed = Schedule(schedule)
    caller = sys._getframe(1)
    place = f"{caller.f_globals.get('__name__', '?')}:{caller.f_lineno}"

    def declare(task: T) -> T:
        _remember(
            Recurrence(
                key=key,
                task=task,
                schedule=parsed,
                args=tuple(args),
                kwargs=dict(kwargs or {}),
                queue_name=queue_name,
                priority=priority,
                place=place,
            )
        )
        return task

    return declare


def declared() -> list[Recurrence]:
    """All that recurs. Looks once wherever tasks may be declared.

    Keys are unique unless the project has a mistake, which a system check reports.
    """
    registry.discover()
    return list(_declared)


def _remember(recurrence: Recurrence) -> None:
    _declared[:] = [each for each in _declared if not each.is_again(recurrence)]
    _declared.append(recurrence)


# ── Checks ─────────────────────────────────────────────────────────────────────


def _check_key(key: object) -> None:
    if not _is_name(key, KEY_LENGTH):
        raise ValueError(
            f"@recurring: the key {key!r} must have 1 to {KEY_LENGTH} characters, "
            "without control characters and without space at its ends."
        )


def _is_name(value: object, length: int) -> TypeGuard[str]:
    # Space at its ends: some databases would take "a" and "a " for the same.
    return (
        isinstance(value, str)
        and 1 <= len(value) <= length
        and value.isprintable()
        and value == value.strip()
    )


def _check_schedule(schedule: Schedule) -> None:
    if len(schedule.text) > SCHEDULE_LENGTH:
        raise ValueError(
            f"@recurring: the schedule {schedule.text!r} has more than "
            f"{SCHEDULE_LENGTH} characters."
        )


def _check_task(task: object) -> None:
    if not is_task(task):
        raise TypeError(
            f"@recurring got {task!r}, which is no task. It stands above @task:\n"
            "    @recurring(...)\n    @task\n    def ..."
        )
    if len(task.module_path) > TASK_PATH_LENGTH:
        raise ValueError(
            f"@recurring: the path {task.module_path!r} has more than "
            f"{TASK_PATH_LENGTH} characters."
        )
    # A schedule is stored with the path of its task, which leads to the declared one.
    if registry.declared().get(task.module_path, task) != task:
        raise TypeError(
            f"@recurring got a variation of {task.module_path}, made with using(). "
            "Give queue_name and priority to @recurring instead."
        )


def _check_call(task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    # The call itself, to find what does not fit before the night.
    dump_call(args, kwargs)
    context = (None,) if task.takes_context else ()
    try:
        # Of the outermost function, which is the one that is called.
        signature(task.func, follow_wrapped=False).bind(*context, *args, **kwargs)
    except TypeError as error:
        raise TypeError(f"@recurring: {task.module_path}(): {error}") from None


def _check_queue(task: AnyTask, name: str | None, priority: int | None) -> None:
    if name is not None and (not _is_name(name, QUEUE_NAME_LENGTH) or "*" in name):
        raise ValueError(
            f"@recurring: queue_name {name!r} must be text of 1 to {QUEUE_NAME_LENGTH} "
            "characters, without '*', control characters and space at its ends."
        )
    task.using(queue_name=name, priority=priority)
