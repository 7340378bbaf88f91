"""What ``settings.py`` has written: the setting, and attributes of the package."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.conf import settings

MODULE_SETTINGS = (
    "process_heartbeat_interval",
    "process_alive_threshold",
    "process_boot_timeout",
    "shutdown_timeout",
    "supervisor_pidfile",
    "preserve_finished_jobs",
    "clear_finished_jobs_after",
    "clear_failed_jobs_after",
    "default_concurrency_control_period",
    "on_thread_error",
)


class _Substitute(NamedTuple):
    value: Any
    place: str


_substitutes: list[_Substitute] = []


@contextmanager
def use(value: Any, *, place: str | None = None) -> Iterator[None]:
    """Put something in the place of the setting for the block, children included.

    Messages then name the place where it was written.
    """
    _substitutes.append(_Substitute(value, place or setting_place()))
    try:
        yield
    finally:
        _substitutes.pop()


def setting() -> Any:
    """The value of ``ROBUST_QUEUE``, of whatever form; None where there is none."""
    if _substitutes:
        return _substitutes[-1].value
    return getattr(settings, "ROBUST_QUEUE", None)


def setting_place() -> str:
    """Where that value was written, as messages name it."""
    return _substitutes[-1].place if _substitutes else "ROBUST_QUEUE"


def assigned() -> dict[str, Any]:
    """What was assigned to the module ``robust_queue``."""
    attributes = vars(sys.modules["robust_queue"])
    return {name: attributes[name] for name in MODULE_SETTINGS if name in attributes}
