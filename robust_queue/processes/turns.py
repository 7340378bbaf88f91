"""Turns: whose turn it is in queues that are shared, as one worker remembers it.

Each worker goes around by itself: nothing is written down, and nobody waits for anyone.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from robust_queue import registry
from robust_queue.aliases import backends_of
from robust_queue.configuration import WorkerConfiguration
from robust_queue.stores.rows import Claim


class Standing(NamedTuple):
    """The partition served last of each queue that is shared, and the turn it is."""

    partitioned: Mapping[str, str]
    turn: int


class Turns:
    """Where the next look is to begin; told of what has come of each."""

    def __init__(self, queues: Sequence[str]) -> None:
        self._served = dict.fromkeys(queues, "")
        self._turn = 0

    @property
    def are_taken(self) -> bool:
        """Is there any queue that is shared?"""
        return bool(self._served)

    @property
    def standing(self) -> Standing:
        return Standing(self._served, self._turn)

    def learn(
        self, claims: Sequence[Claim], *, given_back: Sequence[Claim] = ()
    ) -> None:
        """These have come, in the order in which they were picked.

        Whose job goes back to the queue has not been served.
        """
        if not self._served:
            return
        self._turn += 1
        back = {each.job_id for each in given_back}
        for each in claims:
            if each.queue_name in self._served and each.job_id not in back:
                self._served[each.queue_name] = each.partition_key


def shared_queues(database: str, configuration: WorkerConfiguration) -> list[str]:
    """The queues of a worker whose partitions take turns."""
    named = set(partitioned_queues(database)) - registry.external_queues()
    return sorted(name for name in named if configuration.serves(name))


def queues_left_out(configuration: WorkerConfiguration) -> tuple[str, ...]:
    """The queues that a worker would serve if they were not those of external tasks."""
    external = registry.external_queues()
    return tuple(sorted(name for name in external if configuration.serves(name)))


def partitioned_queues(database: str) -> Iterator[str]:
    """All queues whose partitions take turns, also those that are served outside."""
    for backend in backends_of(database):
        for name, queue in backend.queue_options.queues.items():
            if queue.partition_by is not None:
                yield name
