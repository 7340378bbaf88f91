"""What a recurring task must not be, and what is said about it."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from inspect import signature
from typing import Any, TypeGuard

from robust_queue import registry
from robust_queue.aliases import is_ours, options_of
from robust_queue.arguments import check_size, dump_call
from robust_queue.backoffs import duration
from robust_queue.compat import AnyTask, is_task
from robust_queue.schedules import Schedule, zone_named

# What the columns hold.
KEY_LENGTH = 255
SCHEDULE_LENGTH = 255
TASK_PATH_LENGTH = 255
QUEUE_NAME_LENGTH = 128
MOST_MISSED = 10_000
LONGEST_JITTER = timedelta(days=1)


def check_key(key: object) -> None:
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


def check_schedule(schedule: Schedule) -> None:
    if len(schedule.text) > SCHEDULE_LENGTH:
        raise ValueError(
            f"@recurring: the schedule {schedule.text!r} has more than "
            f"{SCHEDULE_LENGTH} characters."
        )


def check_zone(name: str | None) -> None:
    if name is not None:
        zone_named(name)


def check_task(task: object) -> None:
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


def check_arguments(args: object, kwargs: object) -> None:
    """Refuse what would be taken apart letter by letter, or not at all."""
    if not isinstance(args, Sequence) or isinstance(args, str | bytes):
        raise TypeError(f"@recurring: args must be a list or a tuple, got {args!r}.")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise TypeError(f"@recurring: kwargs must be a dict, got {kwargs!r}.")


def check_call(task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    # The call itself, to find what does not fit before the night.
    text = dump_call(args, kwargs)
    if is_ours(task.get_backend()):
        limit = options_of(task.backend).max_arguments_size
        check_size(text, limit, task.backend)
    context = (None,) if task.takes_context else ()
    try:
        # Of the outermost function, which is the one that is called.
        signature(task.func, follow_wrapped=False).bind(*context, *args, **kwargs)
    except TypeError as error:
        raise TypeError(f"@recurring: {task.module_path}(): {error}") from None


def check_queue(task: AnyTask, name: str | None, priority: int | None) -> None:
    if name is not None and (not _is_name(name, QUEUE_NAME_LENGTH) or "*" in name):
        raise ValueError(
            f"@recurring: queue_name {name!r} must be text of 1 to {QUEUE_NAME_LENGTH} "
            "characters, without '*', control characters and space at its ends."
        )
    task.using(queue_name=name, priority=priority)


def check_choice(name: str, value: object, known: Collection[str]) -> None:
    if value not in known:
        choices = ", ".join(map(repr, known))
        raise ValueError(f"@recurring: {name} must be one of {choices}, got {value!r}.")


def check_missed_limit(limit: object) -> None:
    # Not isinstance: True is no count.
    if type(limit) is not int or not 1 <= limit <= MOST_MISSED:
        raise ValueError(
            f"@recurring: missed_limit must be a whole number from 1 to "
            f"{MOST_MISSED:,}, got {limit!r}."
        )


def check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"@recurring: {name} must be True or False, got {value!r}.")


def check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or "\0" in value or not _can_be_sent(value):
        raise TypeError(f"@recurring: {name} must be text, got {value!r}.")


def _can_be_sent(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_jitter(task: AnyTask, value: Any) -> timedelta:
    """A length of time in whole seconds; none where the backend cannot wait."""
    found = duration("@recurring: jitter", value)
    whole = timedelta(seconds=int(found.total_seconds()))
    if found != whole or not timedelta(0) <= found <= LONGEST_JITTER:
        raise ValueError(
            f"@recurring: jitter must be whole seconds, at most a day, got {value!r}."
        )
    if found and not task.get_backend().supports_defer:
        raise ValueError(
            f"@recurring: jitter needs a backend that can defer tasks, which that of "
            f"{task.module_path} cannot."
        )
    return found


def check_backend(task: AnyTask, overlap: str) -> None:
    """Nobody can tell whether a run on another backend is over."""
    if overlap != "allow" and not is_ours(task.get_backend()):
        raise ValueError(
            f"@recurring: overlap={overlap!r} needs a task of Robust Queue, which "
            f"{task.module_path} is not."
        )
    limits = getattr(task, "concurrency", None) or ()
    if overlap == "queue" and any(each.on_conflict == "discard" for each in limits):
        raise ValueError(
            f"@recurring: overlap='queue' lets runs wait, but {task.module_path} has a "
            "concurrency limit that discards what would have to wait."
        )
