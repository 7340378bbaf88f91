"""Posts: the seats that the configuration provides, each to be filled by one child."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from robust_queue.configuration import (
    ConfigurationOptions,
    DispatcherConfiguration,
    WorkerConfiguration,
    current,
)
from robust_queue.recurrence import Recurrence

from .actor import Actor, Surroundings
from .dispatcher import Dispatcher
from .foresight import MOST as AHEAD
from .page import LEAST_SLOT
from .patience import Patience
from .scheduler import Scheduler
from .worker import Worker

# A child that lived for less does not make up for the failures before it.
SETTLED_AFTER = 30.0
ROOM_FOR_A_FAILURE = 512 * 1024
LARGEST_PAGE = 1024 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class Post:
    """A seat: what its child is to do, and how often one had to be replaced."""

    database: str
    actor: type[Actor]
    metadata: str
    slots: int = 0
    slot_size: int = LEAST_SLOT
    # What was wished of whoever filled it last, as the page has it.
    tuning: str = ""
    make: Callable[[Surroundings], Actor]
    patience: Patience = field(default_factory=lambda: Patience(longest=30.0))

    @property
    def kind(self) -> str:
        return self.actor.kind


def posts(
    database: str, options: ConfigurationOptions, recurrences: Sequence[Recurrence]
) -> list[Post]:
    """Every seat that the configuration provides on this database."""
    return [
        *_workers(database, options),
        *(_dispatcher(database, each) for each in options.effective_dispatchers),
        *([scheduler(database, recurrences)] if recurrences else []),
    ]


def _workers(database: str, options: ConfigurationOptions) -> Iterator[Post]:
    for configuration in options.effective_workers:
        for _ in range(configuration.processes):
            yield _worker(database, configuration)


def _worker(database: str, configuration: WorkerConfiguration) -> Post:
    at_once = configuration.threads + configuration.coroutines
    slots = at_once + configuration.most_isolated + AHEAD
    return Post(
        database=database,
        actor=Worker,
        metadata=_told(
            queues=list(configuration.queues),
            threads=configuration.threads,
            coroutines=configuration.coroutines,
            # Beyond, some of those that run would have no place on the page.
            most_threads=configuration.threads + AHEAD,
            polling_interval=configuration.polling_interval.total_seconds(),
        ),
        slots=slots,
        slot_size=_slot_size(slots),
        make=lambda around: Worker(configuration, database=database, around=around),
    )


def _slot_size(slots: int) -> int:
    """Room for a result of any size that is allowed, or for a traceback.

    Where that would be more than a page may have, a large outcome is not written down,
    and counts as one that was never reached if its process dies just then.
    """
    wanted = current().max_result_size + ROOM_FOR_A_FAILURE
    return max(min(wanted, LARGEST_PAGE // slots), LEAST_SLOT)


def _dispatcher(database: str, configuration: DispatcherConfiguration) -> Post:
    return Post(
        database=database,
        actor=Dispatcher,
        metadata=_told(
            batch_size=configuration.batch_size,
            polling_interval=configuration.polling_interval.total_seconds(),
        ),
        make=lambda around: Dispatcher(
            configuration, database=database, identity=around.identity
        ),
    )


def scheduler(database: str, recurrences: Sequence[Recurrence]) -> Post:
    """The seat of a scheduler that declares these."""
    return Post(
        database=database,
        actor=Scheduler,
        metadata=_told(recurring_tasks=[each.key for each in recurrences]),
        make=lambda around: Scheduler(recurrences, database=database),
    )


def _told(**facts: Any) -> str:
    return json.dumps(facts)
