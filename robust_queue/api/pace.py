"""How often somebody may ask: so many requests in a minute.

Counted in Django's cache, as is usual: with one that all servers share it holds for all
of them together, with one in memory for each process by itself.
"""

import time
from uuid import UUID

from django.core.cache import cache

from robust_queue.configuration import current
from robust_queue.models import ApiToken
from robust_queue.reports import report

from .problems import Problem

MINUTE = 60


def count(token: ApiToken) -> None:
    """Count one more request; a problem if there were too many in this minute."""
    most = token.requests_per_minute or current().api_requests_per_minute
    _count(token.pk, "token", most)


def count_dead(worker_id: UUID) -> None:
    """Likewise of a worker that is gone: by then nobody knows which token let it in."""
    _count(worker_id, "worker", current().api_requests_per_minute)


def _count(identity: UUID, kind: str, most: int | None) -> None:
    if most is None:
        return
    minute, second = divmod(time.time(), MINUTE)
    if _counted(f"robust_queue.api.{identity}.{minute:.0f}") > most:
        raise Problem(
            429,
            "too_many_requests",
            f"This {kind} may make {most} requests in a minute.",
            headers={"Retry-After": str(max(int(MINUTE - second), 1))},
        )


def _counted(key: str) -> int:
    """How many there were; none if the cache does not tell.

    The queue goes on without a cache, so whoever works for it does too.
    """
    try:
        # Two minutes, so that one that has just begun is not forgotten in its middle.
        is_first = cache.add(key, 1, timeout=2 * MINUTE)
        return 1 if is_first else int(cache.incr(key))
    except ValueError:
        return 1  # forgotten in between
    except Exception as error:
        report(error, "requests of the API were counted")
        return 0
