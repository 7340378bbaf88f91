"""Slots of keys: how many are free, and who has them, in portable SQL.

A ready job has a slot of each of its keys, and so has a claimed one. Claimed jobs that
run one after the other have one in common. A blocked job has none.

Slots are counted by the row of their key. Whoever changes the number locks that row,
always last and in the order of the keys, so that nobody waits for somebody who waits.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from robust_queue.flow.keys import split

from .records import Records
from .rows import Limit


class Room(NamedTuple):
    """The slots of a key, its row being locked: how many are free, and of how many."""

    free: int
    slots: int


class Waiter(NamedTuple):
    """A blocked job that is among the first of its key."""

    job_id: UUID
    key: str
    other_keys: str

    @property
    def keys(self) -> list[str]:
        return sorted([self.key, *split(self.other_keys)])

    def limits(self, now: datetime) -> list[Limit]:
        """Its keys, each with as many slots as before."""
        return [Limit(key, None, now) for key in self.keys]


class Slots(Records):
    """Counts them."""

    @property
    def _key(self) -> str:
        """The column, whose name is a word of the language elsewhere."""
        return self.connection.ops.quote_name("key")

    def _lock_rooms(self, limits: Sequence[Limit]) -> dict[str, Room]:
        """Lock the rows of these keys, in order, and make those that are missing."""
        ordered = sorted(limits)
        self._insert(
            "semaphores",
            (self._key, "value", "slots", "expires_at"),
            (
                (key, slots or 1, slots or 1, self.to_time(expires_at))
                for key, slots, expires_at in ordered
            ),
            otherwise=self._unless_counted(),
        )
        declared = {each.key: each.slots for each in ordered}
        return {
            # A limit that was changed meanwhile counts as it is declared now.
            key: Room(value + (declared[key] or slots) - slots, declared[key] or slots)
            for key, value, slots in self._lock_semaphores(declared)
        }

    def _lock_semaphores(self, keys: Iterable[str]) -> list[tuple[str, int, int]]:
        ordered = sorted(keys)
        marks = ", ".join(["%s"] * len(ordered))
        return self._fetch(
            f"SELECT {self._key}, value, slots FROM {self._by_key('semaphores')}"
            f" WHERE {self._key} IN ({marks}) ORDER BY {self._key}"
            f" {self._for_update()}",
            ordered,
        )

    def _take_slots(
        self,
        limits: Sequence[Limit],
        rooms: Mapping[str, Room],
        takers: Sequence[Waiter],
    ) -> None:
        taken = Counter(each.key for each in takers)
        holders = {each.key: each.job_id for each in takers}
        self._insert(
            "semaphores",
            (self._key, "value", "slots", "expires_at", "holder_id"),
            (
                (
                    key,
                    rooms[key].free - taken[key],
                    rooms[key].slots,
                    self.to_time(expires_at),
                    self.to_id(holders[key]),
                )
                for key, _, expires_at in sorted(limits)
                if taken[key]
            ),
            otherwise=self._or_count_anew(),
        )

    def _give_back_slots(self, freed: Mapping[str, int]) -> None:
        """So many slots of these keys are free again; their rows are locked."""
        by_number = dict[int, list[str]]()
        for key, slots in freed.items():
            by_number.setdefault(slots, []).append(key)
        for slots, keys in sorted(by_number.items()):
            marks = ", ".join(["%s"] * len(keys))
            self._execute(
                # Never beyond the limit, whatever was counted before.
                "UPDATE robust_queue_semaphores SET value = CASE"
                " WHEN value + %s < slots THEN value + %s ELSE slots END"
                f" WHERE {self._key} IN ({marks})",
                (slots, slots, *sorted(keys)),
            )

    # ── Slots of claims ────────────────────────────────────────────────────────

    def _slots_going_on(
        self,
        slots: Iterable[UUID],
        processes: Iterable[UUID],
        *,
        besides: Container[UUID] = (),
    ) -> set[UUID]:
        """Those of the slots that other claims of these processes have in common.

        To be asked when the rows of their keys are locked: of two who end parts of the
        same chain at the same time, the second one sees what the first has done.
        """
        slots, processes = list(slots), list(processes)
        if not slots:
            return set()
        marks, keys = self._in(slots)
        of_marks, of_keys = self._in(processes)
        rows = self._fetch(
            "SELECT job_id, slot_id FROM robust_queue_claimed_executions"
            f" WHERE process_id IN ({of_marks}) AND slot_id IN ({marks})"
            f" {self._as_of_now()}",
            (*of_keys, *keys),
        )
        return {
            self.from_id(slot_id)
            for job_id, slot_id in rows
            if self.from_id(job_id) not in besides
        }
