"""Blocked in vain ──▶ ready: a sweep for what nobody came to promote.

Whoever frees a slot promotes who is next, unless it dies just then. So now and then
somebody looks at every key that is waited for.
"""

from collections.abc import Sequence

from robust_queue.models import BlockedExecution, Semaphore
from robust_queue.stores import store_for

from .admit import limits_of_ids, promote

PAGE = 500
MOST_PAGES = 20  # in one sweep; the next one goes on from there


class Unblocking:
    """Walks along the keys that are waited for, and begins anew at the end."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._after = ""

    def sweep(self) -> int:
        """Promote what is blocked in vain; return how many jobs were."""
        promoted = 0
        for _ in range(MOST_PAGES):
            keys = store_for(self._database).keys_waited_for(self._after, limit=PAGE)
            promoted += self._promote(keys)
            self._after = keys[-1] if len(keys) == PAGE else ""
            if not self._after:
                break
        return promoted

    def _promote(self, keys: Sequence[str]) -> int:
        free = _with_room(self._database, keys)
        first = [_first_of(self._database, key) for key in free]
        limits = limits_of_ids(self._database, [each.pk for each in first if each])
        wanted = [each for each in limits if each.key in free]
        return len(promote(self._database, wanted))


def _with_room(database: str, keys: Sequence[str]) -> set[str]:
    full = Semaphore.objects.using(database).filter(pk__in=keys, value__lte=0)
    return set(keys).difference(full.values_list("key", flat=True))


def _first_of(database: str, key: str) -> BlockedExecution | None:
    rows = BlockedExecution.objects.using(database).filter(concurrency_key=key)
    return rows.order_by("priority", "job").first()
