"""Buckets that nobody has used for long, and that are full again ──▶ gone."""

from datetime import timedelta
from functools import partial

from django.db.models import Q

from robust_queue import registry
from robust_queue.backoffs import LONGEST_DELAY
from robust_queue.flow import RateLimit
from robust_queue.models import RateBucket
from robust_queue.models.processes import DatabaseNow
from robust_queue.stores.conflicts import retried

BATCH_SIZE = 500
# Even where no task is declared any more that could have used them.
YOUNG = timedelta(days=1)


def sweep(database: str, *, limit: int = BATCH_SIZE) -> int:
    """Delete up to ``limit`` buckets that are as good as new; return how many.

    Whoever needs one again makes it anew, full. One that is used this very moment
    stays: what is old is asked for again by the statement that deletes.
    """
    long_ago = DatabaseNow() - _longest_time_to_fill()
    old = RateBucket.objects.using(database).filter(
        Q(spread_to=None) | Q(spread_to__lt=long_ago), counted_at__lt=long_ago
    )
    keys = list(old.order_by("counted_at").values_list("key", flat=True)[:limit])
    if not keys:
        return 0
    unused = old.filter(pk__in=keys)
    return retried(database, partial(unused._raw_delete, database))


def _longest_time_to_fill() -> timedelta:
    tasks = registry.discover().values()
    limits = filter(None, (getattr(each, "rate_limit", None) for each in tasks))
    return max([YOUNG, *map(_time_to_fill, limits)])


def _time_to_fill(limit: RateLimit) -> timedelta:
    seconds = max(limit.depth / limit.per_second, limit.seconds)
    return timedelta(seconds=min(seconds, LONGEST_DELAY.total_seconds()))
