"""Queues in the settings: what holds for all jobs of one, whatever their tasks say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from robust_queue.rules import Named, PartitionBy, normalise


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfiguration:
    """How the jobs of a queue are served."""

    # Whose turn it is, in place of first in, first out. None: nobody takes turns.
    partition_by: PartitionBy = None

    def __post_init__(self) -> None:
        normalise(self)


QueueConfigurations = Annotated[
    Mapping[str, QueueConfiguration], Named(QueueConfiguration)
]
