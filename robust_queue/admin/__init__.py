"""The admin pages: lists and details to read, and the few things operators do.

Found by the admin's autodiscovery. Nothing else imports this package, so that Robust
Queue works without ``django.contrib.admin``.
"""

from . import (
    executions,
    failures,
    jobs,
    keys,
    locks,
    processes,
    queues,
    recurring,
    roster,
)

__all__ = [
    "executions",
    "failures",
    "jobs",
    "keys",
    "locks",
    "processes",
    "queues",
    "recurring",
    "roster",
]
