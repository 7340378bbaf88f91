"""Those that wait for slots, and how they come by them, in portable SQL."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from django.db import transaction

from robust_queue.flow.keys import SEPARATOR

from .conflicts import retried
from .records import BLOCKED_COLUMNS, READY_COLUMNS, rank
from .rows import Limit
from .slots import Room, Slots, Waiter

# Of one key at a time: a limit may be as large as it likes.
MOST_AT_ONCE = 500
MOST_KEYS = 50  # in one statement
NEXT_OF_KEY = "concurrency_key = %s"

KEYS_WAITED_FOR = """
WITH RECURSIVE waited_for (name) AS (
    SELECT MIN(concurrency_key) FROM robust_queue_blocked_executions
    WHERE concurrency_key > %s
    UNION ALL
    SELECT (
        SELECT MIN(blocked.concurrency_key)
        FROM robust_queue_blocked_executions blocked
        WHERE blocked.concurrency_key > waited_for.name
    )
    FROM waited_for WHERE waited_for.name IS NOT NULL
)
SELECT name FROM waited_for WHERE name IS NOT NULL LIMIT %s
"""

T = TypeVar("T")

# From a job: how much of each of its keys there is, as its task declares it.
LimitsOf: TypeAlias = Callable[[UUID], Sequence[Limit]]


class Round(NamedTuple):
    """What came of one look at those that are next."""

    # Who became ready, and in which queue.
    moved: dict[UUID, str]
    # Who needs more than one slot, and is to be looked at alone.
    several: Sequence[Waiter]
    # Somebody else has taken a slot meanwhile.
    is_late: bool = False

    @property
    def is_not_all(self) -> bool:
        """May there be others, besides those behind who needs more than one slot?"""
        return self.is_late or len(self.moved) >= MOST_AT_ONCE


class Limiting(Slots):
    """Gives slots to those that wait for them, and takes them back."""

    def promote(
        self, limits: Sequence[Limit], *, limits_of: LimitsOf, now: datetime
    ) -> dict[UUID, str]:
        """Make blocked jobs ready, as far as there are slots for them.

        By priority, then in order. Returns their queues. Never part of the caller's
        transaction: everybody who needs a slot would wait for it.

        No wake-up is lost. Whoever blocks a job, and whoever frees a slot, calls this
        when that is committed. The later of the two sees what both have done.
        """
        promoted, met = dict[UUID, str](), set[Waiter]()
        waited_for = self._waited_for(limits)
        while waited_for:
            done = self._promote(waited_for, now)
            promoted |= done.moved
            # Who is met again where it was is in the hands of somebody else.
            several = [each for each in done.several if each not in met]
            met.update(several)
            for each in several:
                promoted |= self._promote_alone(each, limits_of, now)
            is_more = done.is_not_all or several
            waited_for = self._waited_for(limits) if is_more else ()
        return promoted

    def keys_waited_for(self, after: str = "", *, limit: int) -> list[str]:
        """Keys that blocked jobs wait for, in order, from behind this one on.

        However many wait for the same key, it costs one step of the index.
        """
        rows = self._fetch(KEYS_WAITED_FOR, (after, limit))
        return [key for (key,) in rows]

    def _waited_for(self, limits: Sequence[Limit]) -> Sequence[Limit]:
        """Those that somebody waits for. Mostly nobody does, and nothing is locked."""
        found = set[str]()
        for some in _portions(limits):
            marks = ", ".join(["%s"] * len(some))
            rows = self._fetch(
                "SELECT DISTINCT concurrency_key FROM robust_queue_blocked_executions"
                f" WHERE concurrency_key IN ({marks})",
                [each.key for each in some],
            )
            found.update(key for (key,) in rows)
        return sorted(each for each in limits if each.key in found)

    def _promote(self, limits: Sequence[Limit], now: datetime) -> Round:
        def change() -> Round:
            with transaction.atomic(using=self.alias):
                rooms = self._lock_rooms(limits)
                waiters = list(self._first_in_line(rooms))
                alone = {each.job_id: each for each in waiters if not each.other_keys}
                moved = self._lock_blocked(alone)
                self._take_slots(limits, rooms, [alone[each] for each in moved])
                self._move_to_ready("blocked", moved, now)
                return Round(moved, [each for each in waiters if each.other_keys])

        return retried(self.alias, change)

    def _promote_alone(
        self, waiter: Waiter, limits_of: LimitsOf, now: datetime
    ) -> dict[UUID, str]:
        """Make a job ready that needs several slots, or have it wait for another one.

        All of them or none: one that is kept while its job waits for another keeps
        everybody else from working.
        """
        # Of a job that is gone nobody knows more than its keys.
        needed = limits_of(waiter.job_id) or waiter.limits(now)

        def change() -> dict[UUID, str]:
            with transaction.atomic(using=self.alias):
                rooms = self._lock_rooms(needed)
                moved = self._lock_blocked([waiter.job_id])
                full = [key for key, room in rooms.items() if room.free < 1]
                if full and moved:
                    self._wait_for(waiter, full[0])
                    return {}
                takers = [waiter._replace(key=key) for key in rooms if moved]
                self._take_slots(needed, rooms, takers)
                self._move_to_ready("blocked", moved, now)
                return moved

        return retried(self.alias, change)

    def _wait_for(self, waiter: Waiter, key: str) -> None:
        others = SEPARATOR.join(each for each in waiter.keys if each != key)
        self._execute(
            "UPDATE robust_queue_blocked_executions"
            " SET concurrency_key = %s, other_keys = %s WHERE job_id = %s",
            (key, others, self.to_id(waiter.job_id)),
        )

    # ── Those that wait ────────────────────────────────────────────────────────

    def _first_in_line(self, rooms: Mapping[str, Room]) -> Iterator[Waiter]:
        """As many blocked jobs of each key as there is room for."""
        free = [(key, room.free) for key, room in rooms.items() if room.free > 0]
        for some in _portions(free):
            lines = (
                "SELECT * FROM (SELECT job_id, concurrency_key, other_keys"
                f" FROM robust_queue_blocked_executions {self._hint(NEXT_OF_KEY)}"
                f" WHERE {NEXT_OF_KEY} ORDER BY priority, job_id LIMIT %s) line{i}"
                for i in range(len(some))
            )
            rows = self._fetch(
                " UNION ALL ".join(lines),
                [each for key, room in some for each in (key, min(room, MOST_AT_ONCE))],
            )
            for job_id, key, other_keys in rows:
                yield Waiter(self.from_id(job_id), key, other_keys)

    def _lock_blocked(self, ids: Iterable[UUID]) -> dict[UUID, str]:
        """Lock those that are still blocked; return their queues.

        One that somebody else has locked is about to be discarded or cancelled. To
        wait for that would be to wait for somebody who may wait for a key.
        """
        ids = list(ids)
        if not ids:
            return {}
        marks, keys = self._in(ids)
        rows = self._fetch(
            f"SELECT job_id, queue_name FROM {self._by_key('blocked_executions')}"
            f" WHERE job_id IN ({marks}) ORDER BY job_id {self._skip_locked()}",
            keys,
        )
        return {self.from_id(job_id): queue_name for job_id, queue_name in rows}

    def _block(self, rows: Iterable[Sequence[Any]]) -> None:
        """Rows of jobs, each with all of its keys at the end, as blocked ones."""
        self._insert("blocked_executions", BLOCKED_COLUMNS, map(_by_first_key, rows))

    # ── Moves ──────────────────────────────────────────────────────────────────

    def _move_to_ready(
        self,
        state: str,
        ids: Iterable[UUID],
        now: datetime,
        *,
        attempts: str = "attempts",
    ) -> None:
        ids = list(ids)
        if not ids:
            return
        marks, keys = self._in(ids)
        self._execute(
            f"INSERT INTO robust_queue_ready_executions ({', '.join(READY_COLUMNS)})"
            f" SELECT job_id, moved.queue_name, {rank('moved.priority')},"
            f" {attempts}, %s,"
            " COALESCE(job.partition_key, '')"
            f" FROM {self._by_key(state + '_executions', 'moved')}"
            f" LEFT JOIN {self._by_key('jobs', 'job')} ON job.id = moved.job_id"
            f" WHERE job_id IN ({marks})",
            (self.to_time(now), *keys),
        )
        self._delete(f"{state}_executions", "job_id", ids)


def _by_first_key(row: Sequence[Any]) -> Sequence[Any]:
    *waiting, keys = row
    first, _, others = keys.partition(SEPARATOR)
    return (*waiting, first, others)


def _portions(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for i in range(0, len(items), MOST_KEYS):
        yield items[i : i + MOST_KEYS]
