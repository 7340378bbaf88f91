"""Locks that are left over ──▶ gone.

Whoever wants a key takes over what is left of it, so that nothing waits for this: it
only keeps the table small. Locks are left by periods that are over, and by jobs that
were deleted by hand.
"""

import secrets

from django.utils import timezone

from robust_queue.stores import store_for

BATCH_SIZE = 500
# So many locks at most are compared with their jobs at a time.
LOOKED_AT = 1_000


def sweep(database: str) -> int:
    """Delete locks that have expired, or whose job has ended; return how many.

    Of those that do not expire only some are looked at, beginning anywhere: keys are
    digests, so that all of them have their turn, and a million costs no more than a
    thousand.
    """
    return _expired(database) + _ended(database)


def _expired(database: str) -> int:
    store, now, deleted = store_for(database), timezone.now(), 0
    while found := store.forget_expired(limit=BATCH_SIZE, now=now):
        deleted += found
    return deleted


def _ended(database: str) -> int:
    store, now = store_for(database), timezone.now()
    starts = (secrets.token_hex(8), "")  # to the end, and from the beginning
    return sum(store.forget_ended(each, limit=LOOKED_AT, now=now) for each in starts)
