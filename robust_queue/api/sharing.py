"""Queues that are shared: whose turn it is among workers outside.

Each process of the server goes around by itself, for all workers that ask it.
"""

from collections.abc import Sequence
from typing import Any

from robust_queue.configuration import WorkerConfiguration
from robust_queue.processes.turns import Turns, partitioned_queues
from robust_queue.stores.rows import Claim

from .own import Own


class Shared:
    """The partitions that were served last, by whomever."""

    def __init__(self, database: str) -> None:
        self._turns = Turns(sorted(partitioned_queues(database)))

    def standing(self, queues: Sequence[str]) -> dict[str, Any]:
        """How it stands in those of these queues that are shared."""
        if not (self._turns.are_taken and queues):
            return {}
        serves = WorkerConfiguration(queues=tuple(queues)).serves
        served, turn = self._turns.standing
        mine = {name: it for name, it in served.items() if serves(name)}
        return {"partitioned": mine, "turn": turn}

    def learn(self, claims: Sequence[Claim]) -> None:
        """These have been given out, in this order."""
        self._turns.learn(claims)


shared = Own(Shared)
