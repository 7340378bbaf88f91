"""The dispatcher: makes ready what has become due, and clears what is old."""

from robust_queue.configuration import DispatcherConfiguration
from robust_queue.lifecycle import cancel
from robust_queue.lifecycle.dispatch import dispatch_due

from . import clock
from .actor import Actor, jittered
from .upkeep import Upkeep

# Seconds between two looks for jobs whose end was asked for, and that wait again.
BETWEEN_SWEEPS = 30.0


class Dispatcher(Actor):
    """Promotes due jobs in batches; several may run at the same time."""

    kind = "Dispatcher"

    def __init__(
        self, configuration: DispatcherConfiguration, *, database: str
    ) -> None:
        super().__init__(database)
        self._configuration = configuration
        self._upkeep = Upkeep(database)
        self._next_look = self._next_sweep = 0.0
        self._is_stopping = False

    def turn(self) -> float:
        # In this order: an error of the upkeep keeps no job waiting.
        if clock.now() >= self._next_look:
            self._next_look = clock.now() + self._dispatch()
        if self._is_stopping:
            return 0.0
        self._sweep_if_due()
        pause = self._upkeep.turn()
        return max(min(pause, self._next_look - clock.now()), 0.0)

    def stop(self) -> None:
        self._is_stopping = True

    def _dispatch(self) -> float:
        limit = self._configuration.batch_size
        moved = dispatch_due(self.database, limit=limit)
        # A full batch was probably not the last.
        return 0.0 if moved == limit else self._pause()

    def _sweep_if_due(self) -> None:
        if clock.now() >= self._next_sweep:
            self._next_sweep = clock.now() + jittered(BETWEEN_SWEEPS)
            cancel.sweep(self.database)

    def _pause(self) -> float:
        return jittered(self._configuration.polling_interval.total_seconds())
