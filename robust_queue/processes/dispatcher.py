"""The dispatcher: makes ready what has become due, and keeps the tables in order."""

from collections.abc import Iterator
from functools import partial
from uuid import UUID, uuid4

from robust_queue.configuration import DispatcherConfiguration
from robust_queue.lifecycle import (
    cancel,
    once,
    overdue,
    rates_sweep,
    recount,
    unique_sweep,
)
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.give_way import give_way
from robust_queue.lifecycle.survey import survey
from robust_queue.lifecycle.tune import forget_wishes
from robust_queue.lifecycle.unblock import Unblocking

from . import clock
from .actor import Actor, jittered
from .gauge import Gauge
from .operating import Operating
from .reopening import Reopening
from .rounds import Round
from .upkeep import Upkeep

# Seconds between two looks for jobs whose end was asked for, and that wait again.
BETWEEN_SWEEPS = 30.0
# And between two looks for jobs that are blocked although there is a slot for them.
BETWEEN_UNBLOCKINGS = 5.0
BETWEEN_FORGETTINGS = 60.0
# And between two looks whether another minute has begun, to be told of.
BETWEEN_READINGS = 5.0
# Between two looks for what is due next, however much comes one behind the other.
BETWEEN_LOOKS = 0.02


class Dispatcher(Actor):
    """Promotes due jobs in batches; several may run at the same time."""

    kind = "Dispatcher"

    def __init__(
        self,
        configuration: DispatcherConfiguration,
        *,
        database: str,
        identity: UUID | None = None,
    ) -> None:
        super().__init__(database)
        self._configuration = configuration
        self._upkeep = Upkeep(database)
        self._reopening = Reopening(database)
        identity = identity or uuid4()
        self._operating = Operating(database, identity)
        self._next_look = 0.0
        self._tables: frozenset[str] = frozenset()
        self._rounds = list(self._rounds_of_locks())
        gauge = Gauge(database, identity)
        self._rounds.append(Round(BETWEEN_READINGS, gauge.read))
        if configuration.concurrency_maintenance:
            self._rounds += self._rounds_of_slots()
        self._is_stopping = False

    def _rounds_of_locks(self) -> Iterator[Round]:
        sweep, forget = BETWEEN_SWEEPS, BETWEEN_FORGETTINGS
        for pause, action, table in (
            (sweep, cancel.sweep, "cancellations"),
            (sweep, forget_wishes, "tunings"),
            (forget, unique_sweep.sweep, "unique_locks"),
            (sweep, once.forget, "named_requests"),
            (forget, rates_sweep.sweep, "rate_buckets"),
            (BETWEEN_UNBLOCKINGS, overdue.end_overdue, "processes"),
        ):
            yield Round(pause, partial(action, self.database), {table})

    def _rounds_of_slots(self) -> Iterator[Round]:
        recounts = self._configuration.concurrency_maintenance_interval.total_seconds()
        blocked, slots = {"blocked_executions"}, {"semaphores"}
        yield Round(BETWEEN_UNBLOCKINGS, Unblocking(self.database).sweep, blocked)
        for pause, action, tables in (
            (BETWEEN_SWEEPS, give_way, blocked),
            (recounts, recount.repair, blocked | slots),
            (BETWEEN_FORGETTINGS, recount.forget_idle, slots),
        ):
            yield Round(pause, partial(action, self.database), tables)

    def turn(self) -> float:
        # In this order: an error of the upkeep keeps no job waiting.
        if clock.now() >= self._next_look:
            self._next_look = clock.now() + self._dispatch()
        if self._is_stopping:
            return 0.0
        for each in self._rounds:
            each.go_if_due(self._tables)
        self._reopening.look_if_due(self._tables)
        self._operating.go_on(self._tables)
        pauses = (self._upkeep.turn(), self._reopening.pause, self._operating.pause)
        return max(min(*pauses, self._next_look - clock.now()), 0.0)

    def stop(self) -> None:
        self._is_stopping = True

    def _dispatch(self) -> float:
        """Move what is due; return when to look again, at the latest when more is.

        Without anything due, a look is all that it takes.
        """
        pause = self._pause()
        left, self._tables = survey(self.database)
        if left is None or left > 0:
            return pause if left is None else min(max(left, BETWEEN_LOOKS), pause)
        limit = self._configuration.batch_size
        moved = dispatch_due(self.database, limit=limit)
        # A full batch was probably not the last.
        if moved == limit:
            return 0.0
        # What is due and cannot be moved is in the hands of somebody else.
        return min(BETWEEN_LOOKS, pause) if moved else pause

    def _pause(self) -> float:
        return jittered(self._configuration.polling_interval.total_seconds())
