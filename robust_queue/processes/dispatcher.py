"""The dispatcher: makes ready what has become due."""

from robust_queue.configuration import DispatcherConfiguration
from robust_queue.lifecycle.dispatch import dispatch_due

from .actor import Actor, jittered


class Dispatcher(Actor):
    """Promotes due jobs in batches; several may run at the same time."""

    kind = "Dispatcher"

    def __init__(
        self, configuration: DispatcherConfiguration, *, database: str
    ) -> None:
        super().__init__(database)
        self._configuration = configuration

    def turn(self) -> float:
        limit = self._configuration.batch_size
        moved = dispatch_due(self.database, limit=limit)
        # A full batch was probably not the last.
        return 0.0 if moved == limit else self._pause()

    def _pause(self) -> float:
        return jittered(self._configuration.polling_interval.total_seconds())
