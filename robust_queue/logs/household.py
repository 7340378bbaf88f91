"""What happens to processes and queues, a line each, in the logger ``robust_queue``."""

import logging
import os
from typing import Any

from django.dispatch import receiver

from robust_queue.signals import (
    ProcessFacts,
    process_exited,
    process_replaced,
    process_started,
    process_stopping,
    queue_paused,
    queue_resumed,
)

logger = logging.getLogger("robust_queue")


def name_of_this_process() -> str | None:
    """The name under which it is registered, if it is one of the queue's."""
    return _names.get(os.getpid())


_names: dict[int, str] = {}


@receiver(process_started)
def log_process_started(sender: type, *, process: ProcessFacts, **kwargs: Any) -> None:
    # The first: where several share a process, that is the supervisor.
    _names.setdefault(process.pid, process.name)
    logger.info("%s started%s.", process, _in_brackets(process))


@receiver(process_stopping)
def log_process_stopping(sender: type, *, process: ProcessFacts, **kwargs: Any) -> None:
    logger.debug("%s is stopping.", process)


@receiver(process_exited)
def log_process_exited(sender: type, *, process: ProcessFacts, **kwargs: Any) -> None:
    if _names.get(process.pid) == process.name:
        del _names[process.pid]
    logger.info("%s stopped.", process)


@receiver(process_replaced)
def log_process_replaced(
    sender: type, *, process: ProcessFacts, reason: str, **kwargs: Any
) -> None:
    is_in_order = process.details.get("exit_code") == 0
    level = logging.INFO if is_in_order else logging.WARNING
    logger.log(level, "%s ended: %s.", process, reason.rstrip("."))


@receiver(queue_paused)
def log_queue_paused(
    sender: type, *, queue_name: str, database: str, **kwargs: Any
) -> None:
    logger.info("Queue %r of database %r is paused.", queue_name, database)


@receiver(queue_resumed)
def log_queue_resumed(
    sender: type, *, queue_name: str, database: str, **kwargs: Any
) -> None:
    logger.info("Queue %r of database %r is open again.", queue_name, database)


def _in_brackets(process: ProcessFacts) -> str:
    told = [
        f"{name.replace('_', ' ')} {_listed(value)}"
        for name, value in process.details.items()
    ]
    return f" ({', '.join(told)})" if told else ""


def _listed(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
