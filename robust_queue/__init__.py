"""Robust Queue: background tasks for Django, stored in the application's database.

Public names are resolved when they are first asked for, so that ``settings.py`` may
import this package before Django is set up.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from .arguments import storable
    from .backend import aenqueue_all, enqueue_all
    from .context import current_job
    from .declaration import task
    from .hooks import (
        on_dispatcher_exit,
        on_dispatcher_start,
        on_dispatcher_stop,
        on_exit,
        on_process_replaced,
        on_queue_paused,
        on_queue_resumed,
        on_scheduler_exit,
        on_scheduler_start,
        on_scheduler_stop,
        on_start,
        on_stop,
        on_worker_exit,
        on_worker_start,
        on_worker_stop,
    )
    from .policies import exponential
    from .recurrence import recurring

_HOMES = {
    "aenqueue_all": "robust_queue.backend",
    "current_job": "robust_queue.context",
    "enqueue_all": "robust_queue.backend",
    "exponential": "robust_queue.policies",
    "on_dispatcher_exit": "robust_queue.hooks",
    "on_dispatcher_start": "robust_queue.hooks",
    "on_dispatcher_stop": "robust_queue.hooks",
    "on_exit": "robust_queue.hooks",
    "on_process_replaced": "robust_queue.hooks",
    "on_queue_paused": "robust_queue.hooks",
    "on_queue_resumed": "robust_queue.hooks",
    "on_scheduler_exit": "robust_queue.hooks",
    "on_scheduler_start": "robust_queue.hooks",
    "on_scheduler_stop": "robust_queue.hooks",
    "on_start": "robust_queue.hooks",
    "on_stop": "robust_queue.hooks",
    "on_worker_exit": "robust_queue.hooks",
    "on_worker_start": "robust_queue.hooks",
    "on_worker_stop": "robust_queue.hooks",
    "recurring": "robust_queue.recurrence",
    "storable": "robust_queue.arguments",
    "task": "robust_queue.declaration",
}

__all__ = [
    "__version__",
    "aenqueue_all",
    "current_job",
    "enqueue_all",
    "exponential",
    "on_dispatcher_exit",
    "on_dispatcher_start",
    "on_dispatcher_stop",
    "on_exit",
    "on_process_replaced",
    "on_queue_paused",
    "on_queue_resumed",
    "on_scheduler_exit",
    "on_scheduler_start",
    "on_scheduler_stop",
    "on_start",
    "on_stop",
    "on_worker_exit",
    "on_worker_start",
    "on_worker_stop",
    "recurring",
    "storable",
    "task",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    return import_module("robust_queue.configuration").module_attribute(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
