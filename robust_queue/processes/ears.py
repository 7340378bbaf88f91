"""Ears: what a worker hears of, where there is something to listen to."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from robust_queue.configuration import WorkerConfiguration

from .listener import Listener, can_listen


class Heard(NamedTuple):
    """What has come since the last time."""

    is_news: bool
    is_cancellation: bool
    is_tuning: bool


class Ears:
    """A listener in its thread, and notes of what it has heard."""

    def __init__(
        self,
        configuration: WorkerConfiguration,
        *,
        left_out: Collection[str],
        database: str,
        wake: Callable[[], None],
    ) -> None:
        self._wake = wake
        self._has_news = self._has_cancellation = self._has_tuning = False
        self._listener: Listener | None = None
        if can_listen(database):
            self._listener = Listener(
                configuration,
                left_out=left_out,
                database=database,
                on_news=self._note_news,
                on_cancellation=self._note_cancellation,
                on_tuning=self._note_tuning,
            )

    def start(self) -> None:
        if self._listener:
            self._listener.start()

    def stop(self, timeout: float) -> None:
        if self._listener:
            self._listener.stop(timeout)

    def serve(
        self, configuration: WorkerConfiguration, *, left_out: Collection[str]
    ) -> None:
        """Heed the news of other queues from now on."""
        if self._listener:
            self._listener.serve(configuration, left_out=left_out)

    def probe(self) -> None:
        """See from time to time whether anything can be heard at all."""
        if self._listener:
            self._listener.probe()

    def hear(self) -> bool:
        """Can anything be heard?"""
        return self._listener is not None and self._listener.hears

    def take(self) -> Heard:
        """What has been heard. It is forgotten first: whatever comes now is new."""
        is_news, self._has_news = self._has_news, False
        is_cancellation, self._has_cancellation = self._has_cancellation, False
        is_tuning, self._has_tuning = self._has_tuning, False
        return Heard(is_news, is_cancellation, is_tuning)

    # ── In the thread of the listener ──────────────────────────────────────────

    def _note_news(self, queues: Collection[str]) -> None:
        self._has_news = True
        self._wake()

    def _note_cancellation(self) -> None:
        self._has_cancellation = True
        self._wake()

    def _note_tuning(self) -> None:
        self._has_tuning = True
        self._wake()
