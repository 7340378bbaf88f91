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
    from .backoffs import exponential, fixed, linear, polynomial
    from .context import check_cancelled, current_job, is_cancelled
    from .declaration import task
    from .exceptions import (
        Discard,
        Retry,
        Snooze,
        TaskCancelled,
        TaskExpired,
        TaskTimeout,
    )
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
    from .recurrence import recurring
    from .verbs import (
        acancel,
        adiscard,
        arerun,
        aretry,
        cancel,
        discard,
        rerun,
        retry,
    )

_HOMES = {
    "Discard": "robust_queue.exceptions",
    "Retry": "robust_queue.exceptions",
    "Snooze": "robust_queue.exceptions",
    "TaskCancelled": "robust_queue.exceptions",
    "TaskExpired": "robust_queue.exceptions",
    "TaskTimeout": "robust_queue.exceptions",
    "acancel": "robust_queue.verbs",
    "adiscard": "robust_queue.verbs",
    "aenqueue_all": "robust_queue.backend",
    "arerun": "robust_queue.verbs",
    "aretry": "robust_queue.verbs",
    "cancel": "robust_queue.verbs",
    "check_cancelled": "robust_queue.context",
    "current_job": "robust_queue.context",
    "discard": "robust_queue.verbs",
    "enqueue_all": "robust_queue.backend",
    "exponential": "robust_queue.backoffs",
    "fixed": "robust_queue.backoffs",
    "is_cancelled": "robust_queue.context",
    "linear": "robust_queue.backoffs",
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
    "polynomial": "robust_queue.backoffs",
    "recurring": "robust_queue.recurrence",
    "rerun": "robust_queue.verbs",
    "retry": "robust_queue.verbs",
    "storable": "robust_queue.arguments",
    "task": "robust_queue.declaration",
}

__all__ = [
    "Discard",
    "Retry",
    "Snooze",
    "TaskCancelled",
    "TaskExpired",
    "TaskTimeout",
    "__version__",
    "acancel",
    "adiscard",
    "aenqueue_all",
    "arerun",
    "aretry",
    "cancel",
    "check_cancelled",
    "current_job",
    "discard",
    "enqueue_all",
    "exponential",
    "fixed",
    "is_cancelled",
    "linear",
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
    "polynomial",
    "recurring",
    "rerun",
    "retry",
    "storable",
    "task",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    return import_module("robust_queue.configuration").module_attribute(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
