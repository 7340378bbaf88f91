"""Concurrency keys: who has a slot of each, and how many wait for one.

Only looks, at some keys at a time: three statements, however many jobs there are.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Min, OuterRef, Q, Subquery

from robust_queue.flow.keys import SEPARATOR, split
from robust_queue.models import BlockedExecution, ClaimedExecution, Semaphore

# More jobs that wait for a key are not counted.
MOST_BLOCKED = 1_000
HOLDERS_SHOWN = 5
# Jobs that run are few, but for a very large site.
HOLDERS_LOOKED_AT = 5_000


@dataclass(frozen=True, slots=True)
class Holder:
    """A job that runs, and has a slot."""

    job_id: UUID
    task_path: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The jobs that wait for a key."""

    count: int = 0
    oldest_at: datetime | None = None
    # There are at least so many. Then the oldest is the one that goes next.
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """A key: some of those that have a slot, and those that wait for one."""

    # How many slots are taken, also by jobs that are ready and have not begun.
    taken: int
    holders: Sequence[Holder]
    waiting: Waiting

    @property
    def others(self) -> int:
        """How many more have a slot."""
        return max(self.taken - len(self.holders), 0)


def key_statuses(
    database: str, semaphores: Iterable[Semaphore]
) -> dict[str, KeyStatus]:
    """How it stands with these keys."""
    known = {each.key: each for each in semaphores}
    holders = _holders(database, known)
    waiting = _waiting(database, known)
    return {
        key: KeyStatus(
            each.limit - each.value,
            holders.get(key, [])[:HOLDERS_SHOWN],
            waiting.get(key, Waiting()),
        )
        for key, each in known.items()
    }


def _holders(database: str, keys: Iterable[str]) -> Mapping[str, list[Holder]]:
    wanted = list(keys)
    may_hold = Q(job__concurrency_key__in=wanted)
    may_hold |= Q(job__concurrency_key__contains=SEPARATOR)
    claims = ClaimedExecution.objects.using(database).filter(may_hold).order_by("pk")
    facts = claims.values_list("pk", "job__task_path", "job__concurrency_key")
    holders = defaultdict(list)
    for job_id, path, held in facts[:HOLDERS_LOOKED_AT]:
        for key in split(held):
            holders[key].append(Holder(job_id, path))
    return holders


def _waiting(database: str, keys: Iterable[str]) -> dict[str, Waiting]:
    wanted = list(keys)
    crowded = _crowded(database, wanted)
    blocked = BlockedExecution.objects.using(database).order_by()
    few = blocked.filter(concurrency_key__in=[k for k in wanted if k not in crowded])
    by_key = few.values("concurrency_key").annotate(n=Count("pk"), at=Min("created_at"))
    counted = by_key.values_list("concurrency_key", "n", "at")
    return {**crowded, **{key: Waiting(n, at) for key, n, at in counted}}


def _crowded(database: str, keys: list[str]) -> dict[str, Waiting]:
    """Those keys that more jobs wait for than are counted.

    Each is looked up in the order of the index, which ends where counting would.
    """
    semaphores = Semaphore.objects.using(database).filter(pk__in=keys)
    blocked: Any = BlockedExecution.objects.filter(concurrency_key=OuterRef("pk"))
    since = blocked.order_by("concurrency_key", "priority", "job").values("created_at")
    found = semaphores.annotate(
        first_at=Subquery(since[:1]),
        last_at=Subquery(since[MOST_BLOCKED - 1 : MOST_BLOCKED]),
    )
    return {
        key: Waiting(MOST_BLOCKED, first_at, is_cut=True)
        for key, first_at, last_at in found.values_list("pk", "first_at", "last_at")
        if last_at is not None
    }
