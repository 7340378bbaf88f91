"""What semaphores say, and what is true of them."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from robust_queue.flow.keys import SEPARATOR, split

from .records import Records

# Who has a slot: ready jobs, and claimed ones, of which a chain has one in common.
_HELD = """
SELECT job.concurrency_key AS held_keys, COUNT(*) AS slots
FROM robust_queue_ready_executions ready
JOIN robust_queue_jobs job ON job.id = ready.job_id
WHERE {condition} GROUP BY job.concurrency_key
UNION ALL
SELECT job.concurrency_key, COUNT(DISTINCT COALESCE(claimed.slot_id, claimed.job_id))
FROM robust_queue_claimed_executions claimed
JOIN robust_queue_jobs job ON job.id = claimed.job_id
WHERE {condition} GROUP BY job.concurrency_key
"""

# Whatever the number of keys, the database finds those that do not seem right. It looks
# at jobs that have one key; others are counted by whoever looks closer.
_SUSPECTS = f"""
WITH held AS (
    SELECT held_keys, SUM(slots) AS slots
    FROM ({_HELD.format(condition="job.concurrency_key <> ''")}) each_kind
    GROUP BY held_keys
)
SELECT semaphore.key FROM robust_queue_semaphores semaphore
LEFT JOIN held ON held.held_keys = semaphore.key
WHERE semaphore.value + COALESCE(held.slots, 0) <> semaphore.slots
UNION ALL
SELECT held.held_keys FROM held
LEFT JOIN robust_queue_semaphores semaphore ON semaphore.key = held.held_keys
WHERE semaphore.key IS NULL
"""

# At one moment, since all of it is one statement.
_COUNTED = f"""
SELECT 1, semaphore.key, semaphore.value, semaphore.slots
FROM robust_queue_semaphores semaphore WHERE semaphore.key IN ({{marks}})
UNION ALL
SELECT 0, held_keys, slots, 0 FROM ({_HELD}) held
"""


class Count(NamedTuple):
    """What the row of a key says, and how many slots are held."""

    key: str
    value: int
    limit: int
    held: int

    @property
    def is_right(self) -> bool:
        return self.value + self.held == self.limit


class Counting(Records):
    """Compares the counts of slots with those who have them."""

    def keys_that_seem_miscounted(self) -> list[str]:
        """Keys to be looked at closer, among them each one that miscounts."""
        found = [key for (key,) in self._fetch(_SUSPECTS, ())]
        return sorted({key for keys in found for key in split(keys)})

    def count_slots(self, keys: Sequence[str]) -> list[Count]:
        """What is counted of these keys, and what is held, at one moment."""
        marks = ", ".join(["%s"] * len(keys))
        several = f"%{SEPARATOR}%"
        condition = f"job.concurrency_key IN ({marks}) OR job.concurrency_key LIKE %s"
        statement = _COUNTED.format(marks=marks, condition=f"({condition})")
        rows = self._fetch(statement, [*keys, *keys, several, *keys, several])
        held = Counter[str]()
        for is_semaphore, held_keys, slots, _ in rows:
            if not is_semaphore:
                held.update(dict.fromkeys(split(held_keys), int(slots)))
        counted = {
            key: (int(value), int(limit))
            for is_row, key, value, limit in rows
            if is_row
        }
        return [Count(key, *counted.get(key, (0, 0)), held[key]) for key in keys]
