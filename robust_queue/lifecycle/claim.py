"""Ready ──▶ claimed, for one process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from robust_queue.stores import store_for
from robust_queue.stores.rows import Claim, Place, Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class Claiming:
    """Who takes how many jobs, and from which queues."""

    process_id: UUID
    queues: Sequence[str] = ("*",)
    limit: int = 1
    # Whoever does not expect any says so: a poll in vain is cheaper then.
    is_likely: bool = True
    # Jobs before this place may be passed over.
    start: Place | None = None
    # There is news of a job, which counts by the microsecond. If it is not found,
    # because some queue is paused, somebody has to look again.
    is_news: bool = False
    # Queues whose partitions take turns, with the one served last, and the turn it is.
    partitioned: Mapping[str, str] = field(default_factory=dict)
    turn: int = 0
    # Queues that are never to be looked at, even if they are named.
    left_out: Sequence[str] = ()

    @property
    def is_possible(self) -> bool:
        return self.limit > 0 and any(it not in self.left_out for it in self.queues)

    def facts(self) -> dict[str, Any]:
        """What a store is told.

        All jobs of a claim carry one token, made here. Should the reply of the
        database get lost, those that carry it are known to be this process's.
        """
        now = timezone.now()
        return {
            "selection": Selection(
                tuple(self.queues),
                self.start,
                # Whoever goes on behind others has found no pause a moment ago.
                expects_no_pause=self.is_news or self.start is not None,
                now=now,
                partitioned=self.partitioned,
                turn=self.turn,
                left_out=self.left_out,
            ),
            "limit": self.limit,
            "process_id": self.process_id,
            "token": uuid4(),
            "now": now,
        }


def claim(
    database: str,
    *,
    process_id: UUID,
    queues: Sequence[str] = ("*",),
    limit: int = 1,
    is_likely: bool = True,
    left_out: Sequence[str] = (),
) -> list[Claim]:
    """Take up to ``limit`` jobs from these queues, in order."""
    return claim_as_told(
        database,
        Claiming(
            process_id=process_id,
            queues=queues,
            limit=limit,
            is_likely=is_likely,
            left_out=left_out,
        ),
    )


def claim_as_told(database: str, claiming: Claiming) -> list[Claim]:
    """Take the jobs that are asked for."""
    if not claiming.is_possible:
        return []
    store = store_for(database)
    return store.claim(**claiming.facts(), is_likely=claiming.is_likely)
