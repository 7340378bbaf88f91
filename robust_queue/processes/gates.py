"""Gates: what a claimed job has to pass right before it begins."""

from collections.abc import Sequence

from robust_queue.lifecycle import rates
from robust_queue.stores.rows import Claim

from .paused_tasks import PausedTasks


class Gates:
    """Turns away what must not begin now. It comes back later, as if unclaimed."""

    def __init__(self, database: str, *, worker_id: str) -> None:
        self._database = database
        self._worker_id = worker_id
        self._paused_tasks = PausedTasks(database, worker_id=worker_id)

    def set_aside(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """Turn away jobs of tasks that are paused; return the others."""
        return self._paused_tasks.set_aside(claims)

    def with_rates(
        self, claims: Sequence[Claim]
    ) -> tuple[Sequence[Claim], Sequence[Claim]]:
        """Those whose tasks have no rate, and those whose tasks have one."""
        limited = rates.limited(claims)
        if not limited:
            return claims, ()
        free = [each for each in claims if each.task_path not in limited]
        return free, [each for each in claims if each.task_path in limited]

    def within_rates(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """Turn away what comes too early; return the others."""
        if not claims:
            return claims
        return rates.admitted(self._database, claims, worker_id=self._worker_id)

    def let_through(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """What is left behind all of the gates."""
        free, limited = self.with_rates(self.set_aside(claims))
        return [*free, *self.within_rates(limited)]
