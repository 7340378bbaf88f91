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
    from .declaration import task
    from .policies import exponential
    from .recurrence import recurring

_HOMES = {
    "aenqueue_all": "robust_queue.backend",
    "enqueue_all": "robust_queue.backend",
    "exponential": "robust_queue.policies",
    "recurring": "robust_queue.recurrence",
    "storable": "robust_queue.arguments",
    "task": "robust_queue.declaration",
}

__all__ = [
    "__version__",
    "aenqueue_all",
    "enqueue_all",
    "exponential",
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
