"""Use the queue, and work for it, from anywhere: over the HTTP API, without Django.

``Client`` enqueues, looks and counts. ``Worker`` performs tasks with functions of yours
and does the rest: it registers, tells that it lives, takes jobs and reports.
"""

try:
    import httpx  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "httpx":
        raise
    raise ImportError(
        "The client needs an extra: python -m pip install 'robust-queue[client]'"
    ) from error

from .client import Client
from .errors import ApiError, Cancelled, Discard, Retry, TimedOut, UnreachableError
from .jobs import Job
from .registered import Registered
from .told import Answer, Pulse, Standing, Work
from .worker import Worker

__all__ = [
    "Answer",
    "ApiError",
    "Cancelled",
    "Client",
    "Discard",
    "Job",
    "Pulse",
    "Registered",
    "Retry",
    "Standing",
    "TimedOut",
    "UnreachableError",
    "Work",
    "Worker",
]
