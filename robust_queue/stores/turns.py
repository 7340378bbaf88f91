"""Turns: of a partitioned queue each partition gets a job before one gets two.

Partition by partition and each through an index, however many jobs one of them has. A
server that would list all partitions at once reads every job of theirs.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from heapq import merge
from itertools import chain, islice, zip_longest
from typing import Any, NamedTuple
from uuid import UUID

from .looks import Look, Turn, looks
from .polling import ALL_QUEUES, ONE_QUEUE, Polling
from .rows import Selection

# The index leaves out what has no partition where a database can, and is used by a
# database only if the condition is the same, word for word.
_HAS_PARTITION = "NOT (partition_key = '')"
NEXT_PARTITION = (
    f"{ONE_QUEUE} AND partition_key > %s AND partition_key <= %s AND {_HAS_PARTITION}"
)
ONE_PARTITION = f"{ONE_QUEUE} AND partition_key = %s AND {_HAS_PARTITION}"
NO_PARTITION = f"{ONE_QUEUE} AND partition_key = ''"

# No partition has it in its key: it sorts behind every character that can be printed.
END = "\U0010ffff"
# Jobs that were enqueued before their queue had partitions are the oldest of it. They
# are looked for among so many, since no index tells them from the others.
OLDEST = 100


class Picked(NamedTuple):
    """A job that is locked, and the partition that it was picked from."""

    job_id: UUID
    partition: str


class TakingTurns(Polling):
    """The queues of a selection, polled in order, where some are not like others."""

    def _lock_ready(self, selection: Selection, limit: int) -> list[UUID]:
        if selection.is_plain:
            return super()._lock_ready(selection, limit)
        taken: list[UUID] = []
        for look in looks(selection):
            taken += self._lock(look, limit - len(taken), taken)
            if len(taken) == limit:
                break
        return taken

    def _lock(
        self, look: Look | Turn, limit: int, taken: Sequence[UUID]
    ) -> Sequence[UUID]:
        if isinstance(look, Turn):
            return self._take_turns(look, limit, taken)
        if look.without and look.pattern == "*":
            together = self._lock_unless_apart(look, limit, taken)
            return together or self._lock_heads(look, limit, taken)
        found: list[UUID] = []
        for condition, parameters in self._polls_of(look):
            gone = [*taken, *found]
            found += self._poll(condition, parameters, limit - len(found), gone)
            if len(found) == limit:
                break
        return found

    def _polls_of(self, look: Look) -> Iterator[tuple[str, Sequence[Any]]]:
        if not look.without:
            return self._polls(Selection((look.pattern,), now=look.now))
        names = self._others(look)
        return ((ONE_QUEUE, self._unless_paused(name, look.now)) for name in names)

    def _unless_paused(self, queue: str, now: datetime) -> Sequence[Any]:
        """What a condition asks of one queue."""
        return queue, queue, self.to_time(now)

    # ── Partitions ─────────────────────────────────────────────────────────────

    def _take_turns(self, turn: Turn, limit: int, taken: Sequence[UUID]) -> list[UUID]:
        """One of each partition; then an even share for each, then whoever has more.

        What is left over goes to the first one that has so much, and the next turn
        begins behind it: it will be another one's then.
        """
        lap = list(islice(self._lap(turn, taken), limit))
        found = [each.job_id for each in lap]
        share = (limit - len(found)) // max(len(lap), 1)
        shares = {
            partition: self._of_partition(turn, partition, share, [*taken, *found])
            for _, partition in lap
        }
        found += _by_turns(shares.values())
        for partition, its_own in shares.items():
            if len(its_own) == share:
                gone, rest = [*taken, *found], limit - len(found)
                found += self._of_partition(turn, partition, rest, gone)
        return found

    def _lap(self, turn: Turn, taken: Sequence[UUID]) -> Iterator[Picked]:
        """One job of each partition, if there is one that nobody else holds."""
        for partition in self._circle(turn):
            for job_id in self._of_partition(turn, partition, 1, taken):
                yield Picked(job_id, partition)

    def _circle(self, turn: Turn) -> Iterator[str]:
        """Each partition, from the one behind the last to the last.

        Where the circle closes there is a place for jobs without partition.
        """
        yield from self._walk(turn, turn.after, END)
        yield ""
        if turn.after:
            yield from self._walk(turn, "", turn.after)

    def _walk(self, turn: Turn, after: str, until: str) -> Iterator[str]:
        # Nothing is locked on the way: MariaDB would lock whatever it meets beyond the
        # range, and would rather begin at the head of the queue if that seems as short.
        statement = (
            "SELECT partition_key FROM robust_queue_ready_executions"
            f" {self._hint(NEXT_PARTITION)} WHERE {NEXT_PARTITION}"
            " ORDER BY partition_key LIMIT 1"
        )
        queue = self._unless_paused(turn.queue, turn.now)
        while rows := self._fetch(statement, (*queue, after, until)):
            ((after,),) = rows
            yield after

    def _of_partition(
        self, turn: Turn, partition: str, limit: int, taken: Sequence[UUID]
    ) -> list[UUID]:
        if not limit:
            return []
        if not partition:
            return self._without_partition(turn, limit, taken)
        named = (*self._unless_paused(turn.queue, turn.now), partition)
        return self._poll(ONE_PARTITION, named, limit, taken)

    def _without_partition(
        self, turn: Turn, limit: int, taken: Sequence[UUID]
    ) -> list[UUID]:
        """Jobs without partition, if there are any among the first of their queue."""
        untaken, keys = self._untaken(taken)
        rows = self._fetch(
            "SELECT job_id FROM (SELECT job_id, partition_key FROM"
            f" robust_queue_ready_executions WHERE {ONE_QUEUE}{untaken}"
            f" ORDER BY priority, job_id LIMIT {OLDEST}) oldest"
            " WHERE partition_key = '' LIMIT %s",
            (*self._unless_paused(turn.queue, turn.now), *keys, limit),
        )
        return [self.from_id(job_id) for (job_id,) in rows]

    def _untaken(self, taken: Sequence[UUID]) -> tuple[str, list[Any]]:
        """This transaction's own locks are not passed over."""
        marks, keys = self._in(taken)
        return (f" AND job_id NOT IN ({marks})" if taken else ""), keys

    # ── All other queues ───────────────────────────────────────────────────────

    def _lock_unless_apart(
        self, look: Look, limit: int, taken: Sequence[UUID]
    ) -> list[UUID]:
        """The first jobs of all queues together, while none is ready in those apart.

        Nothing is locked of these, which others may be about to take.
        """
        if not look.expects_nothing_apart:
            return []
        marks = ", ".join(["%s"] * len(look.without))
        any_apart = (
            "EXISTS (SELECT 1 FROM robust_queue_ready_executions apart"
            f" {self._hint(ONE_QUEUE)} WHERE apart.queue_name IN ({marks}))"
        )
        now = self.to_time(look.now)
        found = self._poll(
            ALL_QUEUES, (now,), limit, taken, unless=any_apart, asked=look.without
        )
        return self._without_latecomers(found, look.without)

    def _without_latecomers(
        self, job_ids: list[UUID], queues: Sequence[str]
    ) -> list[UUID]:
        """A poll locks what is there by then, also what came behind its look."""
        if not job_ids:
            return []
        marks, keys = self._in(job_ids)
        names = ", ".join(["%s"] * len(queues))
        rows = self._fetch(
            f"SELECT job_id FROM {self._by_key('ready_executions')}"
            f" WHERE job_id IN ({marks}) AND queue_name IN ({names})",
            (*keys, *queues),
        )
        late = {self.from_id(job_id) for (job_id,) in rows}
        return [each for each in job_ids if each not in late]

    def _lock_heads(
        self, look: Look, limit: int, taken: Sequence[UUID]
    ) -> Sequence[UUID]:
        """The first jobs of all queues but some, in one order.

        The index of all queues is of no use: whoever follows it meets every job of
        those that are apart. So the heads of the others are looked at, and as many jobs
        of each queue are locked as it has among the first.
        """
        names = self._others(look)
        heads = [self._head(name, look.now, limit, taken) for name in names]
        first = list(islice(merge(*heads), limit))
        found: list[UUID] = []
        for name in dict.fromkeys(name for *_, name in first):
            many = sum(each == name for *_, each in first)
            queue = self._unless_paused(name, look.now)
            found += self._poll(ONE_QUEUE, queue, many, taken)
        order = {job_id: place for place, (_, job_id, _) in enumerate(first)}
        return sorted(found, key=lambda job_id: order.get(job_id, limit))

    def _others(self, look: Look) -> Iterator[str]:
        """Queues of a pattern with ready jobs, but those that are apart."""
        # Name by name: whoever asks MariaDB for all of them at once has it read every
        # job, for as long as its statistics are those of an empty table.
        name, comparison = look.pattern[:-1], ">="
        until = name + END
        while rows := self._fetch(
            f"SELECT queue_name FROM robust_queue_ready_executions"
            f" {self._hint(ONE_QUEUE)} WHERE queue_name {comparison} %s"
            " AND queue_name <= %s ORDER BY queue_name LIMIT 1",
            (name, until),
        ):
            ((name,),), comparison = rows, ">"
            if name not in look.without:
                yield name

    def _head(
        self, queue: str, now: datetime, limit: int, taken: Sequence[UUID]
    ) -> list[tuple[int, UUID, str]]:
        untaken, keys = self._untaken(taken)
        rows = self._fetch(
            "SELECT priority, job_id FROM robust_queue_ready_executions"
            f" {self._hint(ONE_QUEUE)} WHERE {ONE_QUEUE}{untaken}"
            " ORDER BY priority, job_id LIMIT %s",
            (*self._unless_paused(queue, now), *keys, limit),
        )
        return [(rank, self.from_id(job_id), queue) for rank, job_id in rows]


def _by_turns(shares: Iterable[Sequence[UUID]]) -> list[UUID]:
    """The first of each, then the second of each, and so on."""
    return [each for each in chain(*zip_longest(*shares)) if each]
