"""The runtime: a supervisor, the processes it forks, and how their ends are told.

::

    manage.py robust_queue ──▶ supervisor ──fork──▶ child ──▶ worker ──▶ pool of threads
                                   │                  │  └──▶ dispatcher, or scheduler
                                   │                  └─────▶ heart (a thread)
                                   └── reaps, buries, replaces, prunes

The errors below are what becomes of a job whose process did not live to settle it.
"""

from robust_queue.exceptions import RobustQueueError


class ProcessError(RobustQueueError):
    """A process ended, or was taken for dead, while it ran the job."""


class ProcessExitError(ProcessError):
    """The process ended without settling the job; its supervisor saw it end."""


class ProcessPrunedError(ProcessError):
    """The process was silent for longer than ``process_alive_threshold``."""


class ProcessMissingError(ProcessError):
    """The job was claimed by a process that nobody knows any more."""


__all__ = [
    "ProcessError",
    "ProcessExitError",
    "ProcessMissingError",
    "ProcessPrunedError",
]
