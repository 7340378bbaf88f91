"""What limits of different kinds declare alike, brought into form or refused."""

from datetime import timedelta
from typing import Any

from robust_queue.backoffs import LONGEST_DELAY, duration
from robust_queue.compat import InvalidTask

# How groups begin that are the queue's own.
RESERVED = "@"


def check_group(owner: str, group: Any) -> None:
    """Refuse what is no name of a group; None is the path of the task."""
    if group is not None and not (group and isinstance(group, str)):
        raise InvalidTask(f"{owner}: group must be a text, got {group!r}.")
    if group is not None and group.startswith(RESERVED):
        raise InvalidTask(f"{owner}: group must not begin with {RESERVED}: {group!r}.")


def period(name: str, value: Any) -> timedelta | None:
    """A length of time, or None if nothing is declared."""
    if value is None:
        return None
    try:
        found = duration(name, value)
    except ValueError as error:
        raise InvalidTask(str(error)) from None
    if not timedelta(0) < found <= LONGEST_DELAY:
        raise InvalidTask(f"{name} must be longer than zero, got {value!r}.")
    return found
