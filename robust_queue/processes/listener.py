"""The listener: hears of ready jobs through PostgreSQL's notifications.

A thread with a connection of its own, of a worker or of those who wait at an API. That
notifications arrive is not believed but tried, again and again: behind a pooler that
shares sessions they get lost, and a line that is dead at the other end looks like one
on which nothing happens. Until a probe has come through, and whenever one does not,
they poll as if there were no listener.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeAlias
from uuid import uuid4

from django.db import Error, connections

from robust_queue.configuration import WorkerConfiguration, current
from robust_queue.exceptions import RobustQueueError
from robust_queue.stores import store_for
from robust_queue.stores.news import CHANNEL, News

from . import clock
from .actor import jittered
from .connections import dedicate, drop
from .patience import Patience
from .wakeup import Wakeup

logger = logging.getLogger("robust_queue")

PATIENCE = 5  # seconds for a statement, and for a probe
BETWEEN_PROBES = 20.0
# News that comes in a bunch is one piece of news.
BUNCH = 0.005
LONGEST_SILENCE = 120.0


# Called with the queues that there is news of; with none if it may be of any.
OnNews: TypeAlias = Callable[[Collection[str]], None]


class DeafError(RobustQueueError):
    """Notifications are sent, and do not arrive."""


def can_listen(database: str) -> bool:
    """Is there something to listen to, and is it wanted?"""
    vendor = connections[database].vendor
    return vendor == "postgresql" and current().notifications and _is_psycopg3()


def _is_psycopg3() -> bool:
    # Not importable without a driver for PostgreSQL.
    from django.db.backends.postgresql.psycopg_any import (  # noqa: PLC0415
        is_psycopg3,
    )

    return bool(is_psycopg3)


class Listener:
    """Tells when one of the queues that are served has ready jobs."""

    def __init__(
        self,
        configuration: WorkerConfiguration,
        *,
        left_out: Collection[str] = (),
        database: str,
        on_news: OnNews,
        on_cancellation: Callable[[], None] = lambda: None,
        on_tuning: Callable[[], None] = lambda: None,
    ) -> None:
        self.serve(configuration, left_out=left_out)
        self._database = database
        self._on_news = on_news
        self._on_cancellation = on_cancellation
        self._on_tuning = on_tuning
        self._token = uuid4().hex
        self._thread = threading.Thread(
            target=self._run, name="robust_queue listener", daemon=True
        )
        self._wakeup = Wakeup()
        self._is_over = False
        self._patience = Patience(first=1.0, longest=LONGEST_SILENCE)
        # Written by both threads, each a plain value: when the probe under way was
        # sent, and when the next one is due.
        self._probe_sent_at: float | None = None
        self._next_probe: float | None = None
        self.hears = False

    # ── The worker's side ──────────────────────────────────────────────────────

    def serve(
        self, configuration: WorkerConfiguration, *, left_out: Collection[str]
    ) -> None:
        """Heed the news of these queues from now on, but of those left out."""
        self._configuration, self._left_out = configuration, left_out

    def probe(self) -> None:
        """Send a probe if one is due, on the queue's own connection.

        Not on that of the listener: a pooler would hand its own notification back to
        it within the reply, and lose all those that come later.
        """
        due = self._next_probe
        if due is None or clock.now() < due or self._probe_sent_at:
            return
        self._next_probe, self._probe_sent_at = None, clock.now()
        try:
            store_for(self._database).probe(self._token)
        except Exception:
            # Never sent, so it is not for the listener to answer for.
            self._next_probe, self._probe_sent_at = due, None
            raise
        self._wakeup.set()

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = PATIENCE) -> None:
        """End the thread, and with it the connection."""
        self._is_over = True
        self._wakeup.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    # ── The thread ─────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while not self._is_over:
            try:
                self._listen()
            except Exception as error:
                self._tell_of_silence(error)
            finally:
                self._forget()
            if not self._is_over:
                self._wakeup.wait(self._patience.left)

    def _listen(self) -> None:
        line = self._open()
        self._probe_sent_at, self._next_probe = None, clock.now()
        # What became ready before is told by nobody.
        self._on_news(())
        while not self._is_over:
            self._heed(self._received(line))
            self._judge_silence()
            # Until something arrives, the worker has sent a probe, or one is late.
            self._wakeup.wait(self._until_late(), line.fileno())

    def _open(self) -> Any:
        dedicate(self._database, patience=PATIENCE)
        connection = connections[self._database]
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (session,) = cursor.fetchone()
            if session != connection.connection.info.backend_pid:
                # To LISTEN in a session that is somebody else's the next moment would
                # make that one receive, and keep, what it never asked for.
                raise DeafError("a pooler is in between, which may share sessions")
            cursor.execute(f"LISTEN {CHANNEL}")
        return connection.connection

    def _received(self, line: Any) -> list[News]:
        # Not by notifies(), which takes ten times as long to find out the same.
        with connections[self._database].wrap_database_errors:
            line.pgconn.consume_input()
            found = list(iter(line.pgconn.notifies, None))
        return [News.of(each.extra.decode(errors="replace")) for each in found]

    def _until_late(self) -> float:
        sent = self._probe_sent_at
        return BETWEEN_PROBES if sent is None else sent + PATIENCE - clock.now()

    def _heed(self, received: list[News]) -> None:
        if any(each.probe == self._token for each in received):
            self._tell_of_sound()
        if any(each.is_cancellation for each in received):
            self._on_cancellation()
        if any(each.is_tuning for each in received):
            self._on_tuning()
        news = [each for each in received if self._is_for_us(each)]
        if news:
            self._on_news(_queues_of(news))
            time.sleep(BUNCH)

    def _is_for_us(self, news: News) -> bool:
        if news.probe or news.is_cancellation or news.is_tuning:
            return False
        return not news.queues or any(map(self._serves, news.queues))

    def _serves(self, queue: str) -> bool:
        return queue not in self._left_out and self._configuration.serves(queue)

    # ── What is believed ───────────────────────────────────────────────────────

    def _tell_of_sound(self) -> None:
        if not self.hears:
            logger.info("Notifications arrive: an idle worker hardly polls.")
        self.hears = True
        self._patience.succeed()
        self._probe_sent_at = None
        self._next_probe = clock.now() + jittered(BETWEEN_PROBES)

    def _judge_silence(self) -> None:
        if self._until_late() <= 0:
            raise DeafError("they are sent and do not arrive")

    def _tell_of_silence(self, error: Exception) -> None:
        # Told once, and again when it has been heard in between.
        level = logging.DEBUG if self._patience.failures else logging.WARNING
        pause = self._patience.fail()
        logger.log(
            level,
            "No notifications: %s. Polling every %g s instead; listening again in "
            "%.0f s.",
            str(error).strip(),
            self._configuration.polling_interval.total_seconds(),
            pause,
            exc_info=not isinstance(error, Error | DeafError),
        )

    def _forget(self) -> None:
        self.hears = False
        self._probe_sent_at = self._next_probe = None
        drop(self._database)
        # Somebody may be in the middle of a long nap.
        self._on_news(())


def _queues_of(news: Iterable[News]) -> Collection[str]:
    """All that are told of; none if one of them may be of any queue."""
    told = [each.queues for each in news]
    return frozenset().union(*told) if all(told) else ()
