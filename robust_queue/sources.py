"""What ``settings.py`` has written: the setting, and attributes of the package."""

import sys
from typing import Any

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


def setting() -> Any:
    """The value of ``ROBUST_QUEUE``, of whatever form; None where there is none."""
    return getattr(settings, "ROBUST_QUEUE", None)


def assigned() -> dict[str, Any]:
    """What was assigned to the module ``robust_queue``."""
    attributes = vars(sys.modules["robust_queue"])
    return {name: attributes[name] for name in MODULE_SETTINGS if name in attributes}
