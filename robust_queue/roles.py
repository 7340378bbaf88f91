"""Workers and dispatchers in the settings: who runs, and what each of them does."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from robust_queue.rules import (
    BytesOrNone,
    Count,
    CountOrNone,
    Crew,
    CrewOrDefault,
    CrewOrNone,
    Flag,
    Interval,
    IntervalOrNone,
    Isolation,
    Members,
    Queues,
    normalise,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfiguration:
    """Which queues a worker serves, and how many tasks it runs in which way."""

    queues: Queues = ("*",)
    threads: Crew = 3
    coroutines: CrewOrNone = 100
    processes: Crew = 1
    polling_interval: Interval = timedelta(seconds=0.1)
    max_tasks: CountOrNone = None
    max_rss: BytesOrNone = None
    isolation: Isolation = "thread"
    isolated: CrewOrDefault = None
    memory_limit: BytesOrNone = None
    cpu_limit: IntervalOrNone = None

    def __post_init__(self) -> None:
        normalise(self)

    @property
    def most_isolated(self) -> int:
        """How many tasks may run in processes of their own at a time."""
        return self.threads if self.isolated is None else self.isolated

    @property
    def patterns(self) -> tuple[str, ...]:
        """What is served, in order: exact names, prefixes such as ``mail*``, ``*``."""
        return tuple(queue for queue in self.queues if "*" not in queue[:-1])

    @property
    def ignored_patterns(self) -> tuple[str, ...]:
        """What matches nothing, because its ``*`` is not at the end."""
        return tuple(queue for queue in self.queues if "*" in queue[:-1])

    def serves(self, queue: str) -> bool:
        """Tell whether this worker ever takes jobs of the queue."""
        prefixes = tuple(name[:-1] for name in self.patterns if name.endswith("*"))
        return queue in self.patterns or queue.startswith(prefixes)


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatcherConfiguration:
    """How often due jobs are made ready, and blocked ones looked after."""

    polling_interval: Interval = timedelta(seconds=1)
    batch_size: Count = 500
    concurrency_maintenance: Flag = True
    concurrency_maintenance_interval: Interval = timedelta(seconds=600)

    def __post_init__(self) -> None:
        normalise(self)


Workers = Annotated[Sequence[WorkerConfiguration] | None, Members(WorkerConfiguration)]
Dispatchers = Annotated[
    Sequence[DispatcherConfiguration] | None, Members(DispatcherConfiguration)
]
