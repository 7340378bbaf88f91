"""Semaphores that miscount ──▶ right again; those that nobody needs ──▶ gone.

A slot is taken and given back in the transaction that moves its job. So a count is
wrong only if somebody has changed rows by hand, or a server has lost some; and then it
would stay wrong for ever. So what is counted is compared with who is there.
"""

import logging
from functools import partial

from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from robust_queue import registry
from robust_queue.configuration import current
from robust_queue.models import BlockedExecution, Semaphore
from robust_queue.stores import store_for
from robust_queue.stores.conflicts import retried
from robust_queue.stores.counting import Count

from .admit import promote_keys

logger = logging.getLogger("robust_queue")

BATCH = 500


def miscounted(database: str) -> list[Count]:
    """The keys whose free slots are not their limit less those that are held."""
    found, store = list[Count](), store_for(database)
    suspects = store.keys_that_seem_miscounted()
    for i in range(0, len(suspects), BATCH):
        counts = store.count_slots(suspects[i : i + BATCH])
        found += [each for each in counts if not each.is_right]
    return found


def repair(database: str) -> int:
    """Put right every key that miscounts, and promote who is next; return how many."""
    if not _is_used(database):
        return 0
    wrong = [each.key for each in miscounted(database)]
    # One by one: others wait for the row of a key, and it takes a while to count.
    repaired = [
        key for key in wrong if retried(database, partial(_repair, database, key))
    ]
    promote_keys(database, repaired)
    return len(repaired)


def _is_used(database: str) -> bool:
    """Is anything limited at all? If not, nobody has to look at all ready jobs."""
    tasks = registry.discover().values()
    if any(getattr(each, "concurrency", None) for each in tasks):
        return True
    return Semaphore.objects.using(database).exists()


def forget_idle(database: str) -> int:
    """Delete semaphores all of whose slots have been free for long enough.

    One that is missing counts as free.
    """
    forgotten = 0
    # As many as there are: a project may have a key for each of its customers' orders.
    while found := _forget_some(database):
        forgotten += found
    return forgotten


def _forget_some(database: str) -> int:
    blocked = BlockedExecution.objects.filter(concurrency_key=OuterRef("key"))
    idle = Semaphore.objects.using(database).filter(
        ~Exists(blocked), expires_at__lt=timezone.now(), value=F("limit")
    )
    keys = list(idle.order_by("expires_at").values_list("key", flat=True)[:BATCH])
    still_idle = Semaphore.objects.using(database).filter(pk__in=keys, value=F("limit"))
    # In one statement, which looks again at each row that it has locked.
    return retried(database, lambda: still_idle._raw_delete(database)) if keys else 0


def _repair(database: str, key: str) -> bool:
    """Count again while nobody can take a slot, or give one back."""
    semaphores = Semaphore.objects.using(database)
    with transaction.atomic(using=database):
        # There may be none. Who creates one at the same time waits for this.
        semaphores.bulk_create([_full(key)], ignore_conflicts=True)
        list(semaphores.select_for_update().filter(pk=key))
        (count,) = store_for(database).count_slots([key])
        if count.is_right:
            return False
        limit = max(count.limit, 1)
        semaphores.filter(pk=key).update(value=limit - count.held, limit=limit)
    logger.warning("The concurrency key %s has miscounted, and is right again.", key)
    return True


def _full(key: str) -> Semaphore:
    expires_at = timezone.now() + current().default_concurrency_control_period
    return Semaphore(key=key, value=1, limit=1, expires_at=expires_at)
