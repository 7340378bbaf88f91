"""The tables. Adjectives live on their QuerySets, verbs in ``lifecycle``."""

from .attempts import Attempt
from .executions import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    ReadyExecution,
    ScheduledExecution,
)
from .isolated import IsolatedRun
from .jobs import Job
from .locks import Cancellation, RateBucket, Semaphore, UniqueLock
from .operations import Operation
from .processes import Process
from .queues import Pause, TaskPause, Tuning
from .recurring import RecurringExecution, RecurringTask
from .rollups import Rollup
from .tokens import ApiToken, NamedRequest

__all__ = [
    "ApiToken",
    "Attempt",
    "BlockedExecution",
    "Cancellation",
    "ClaimedExecution",
    "FailedExecution",
    "FinishedExecution",
    "IsolatedRun",
    "Job",
    "NamedRequest",
    "Operation",
    "Pause",
    "Process",
    "RateBucket",
    "ReadyExecution",
    "RecurringExecution",
    "RecurringTask",
    "Rollup",
    "ScheduledExecution",
    "Semaphore",
    "TaskPause",
    "Tuning",
    "UniqueLock",
]
