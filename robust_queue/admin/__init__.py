"""The admin pages: lists and details to read, and the few things operators do.

Found by the admin's autodiscovery. Nothing else imports this package, so that Robust
Queue works without ``django.contrib.admin``.
"""

from . import executions, jobs, locks, processes, queues, recurring

__all__ = ["executions", "jobs", "locks", "processes", "queues", "recurring"]
