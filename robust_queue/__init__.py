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
        DuplicateTaskError,
        Retry,
        Snooze,
        TaskCancelled,
        TaskDiscarded,
        TaskExpired,
        TaskTimeout,
    )
    from .flow import Concurrency, RateLimit, Unique
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
    from .limiting import limits_concurrency
    from .operators import (
        Queue,
        apause_task,
        aqueue,
        aqueues,
        aresume_task,
        atune,
        aworkers,
        pause_task,
        queue,
        queues,
        resume_task,
        tune,
        workers,
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
    "Concurrency": "robust_queue.flow",
    "Discard": "robust_queue.exceptions",
    "DuplicateTaskError": "robust_queue.exceptions",
    "Queue": "robust_queue.operators",
    "RateLimit": "robust_queue.flow",
    "Retry": "robust_queue.exceptions",
    "Snooze": "robust_queue.exceptions",
    "TaskCancelled": "robust_queue.exceptions",
    "TaskDiscarded": "robust_queue.exceptions",
    "TaskExpired": "robust_queue.exceptions",
    "TaskTimeout": "robust_queue.exceptions",
    "Unique": "robust_queue.flow",
    "acancel": "robust_queue.verbs",
    "adiscard": "robust_queue.verbs",
    "aenqueue_all": "robust_queue.backend",
    "apause_task": "robust_queue.operators",
    "aqueue": "robust_queue.operators",
    "aqueues": "robust_queue.operators",
    "arerun": "robust_queue.verbs",
    "aresume_task": "robust_queue.operators",
    "aretry": "robust_queue.verbs",
    "atune": "robust_queue.operators",
    "aworkers": "robust_queue.operators",
    "cancel": "robust_queue.verbs",
    "check_cancelled": "robust_queue.context",
    "current_job": "robust_queue.context",
    "discard": "robust_queue.verbs",
    "enqueue_all": "robust_queue.backend",
    "exponential": "robust_queue.backoffs",
    "fixed": "robust_queue.backoffs",
    "is_cancelled": "robust_queue.context",
    "limits_concurrency": "robust_queue.limiting",
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
    "pause_task": "robust_queue.operators",
    "polynomial": "robust_queue.backoffs",
    "queue": "robust_queue.operators",
    "queues": "robust_queue.operators",
    "recurring": "robust_queue.recurrence",
    "rerun": "robust_queue.verbs",
    "resume_task": "robust_queue.operators",
    "retry": "robust_queue.verbs",
    "storable": "robust_queue.arguments",
    "task": "robust_queue.declaration",
    "tune": "robust_queue.operators",
    "workers": "robust_queue.operators",
}

__all__ = [
    "Concurrency",
    "Discard",
    "DuplicateTaskError",
    "Queue",
    "RateLimit",
    "Retry",
    "Snooze",
    "TaskCancelled",
    "TaskDiscarded",
    "TaskExpired",
    "TaskTimeout",
    "Unique",
    "__version__",
    "acancel",
    "adiscard",
    "aenqueue_all",
    "apause_task",
    "aqueue",
    "aqueues",
    "arerun",
    "aresume_task",
    "aretry",
    "atune",
    "aworkers",
    "cancel",
    "check_cancelled",
    "current_job",
    "discard",
    "enqueue_all",
    "exponential",
    "fixed",
    "is_cancelled",
    "limits_concurrency",
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
    "pause_task",
    "polynomial",
    "queue",
    "queues",
    "recurring",
    "rerun",
    "resume_task",
    "retry",
    "storable",
    "task",
    "tune",
    "workers",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    return import_module("robust_queue.configuration").module_attribute(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
