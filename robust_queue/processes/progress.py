"""Progress: where in the order of its jobs a worker is, while there are many.

Jobs that were taken leave dead entries behind at the head of the index, which stay for
as long as any transaction of the server is older. With one that lasts for hours each
claim would scan all of them. So a worker that finds as many jobs as it asks for goes on
behind the last one. What has come in front of it since, by a better priority or because
it went back to the queue, is found by the next look at everything, a moment later.
"""

from collections.abc import Sequence

from robust_queue.stores.rows import Claim, Place

# Seconds between two looks at everything, and how much of all time they may take.
BETWEEN_LOOKS = 0.25
MOST_OF_THE_TIME = 0.1


class Progress:
    """The place to go on from; everything is told, the time as well."""

    def __init__(self, *, is_followed: bool) -> None:
        self._is_followed = is_followed
        self._place: Place | None = None
        self._next_look = 0.0

    def start(self, now: float) -> Place | None:
        """Where to begin; None: with the first of all jobs."""
        return self._place if now < self._next_look else None

    def learn(
        self,
        claims: Sequence[Claim],
        *,
        start: Place | None,
        is_full: bool,
        begun: float,
        now: float,
    ) -> None:
        """These have come, after a look that began at ``start``."""
        if start is None:
            pause = max(BETWEEN_LOOKS, (now - begun) / MOST_OF_THE_TIME)
            self._next_look = now + pause
        last = claims[-1] if claims and is_full and self._is_followed else None
        self._place = Place(last.rank, last.job_id) if last else None
