"""Ready jobs ──▶ news for workers that wait for some.

News only makes workers look sooner: polling is the truth. So it is sent when the jobs
are committed, in a transaction of its own, and what becomes of it harms nobody. On
PostgreSQL it is a NOTIFY; other databases have nothing of the kind.

Inside the transaction that writes the jobs it would be simpler, and slow: PostgreSQL
lets only one transaction at a time commit that has something to notify of.
"""

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from robust_queue.configuration import current
from robust_queue.stores import store_for
from robust_queue.transactions import is_inside_a_test, on_commit

logger = logging.getLogger("robust_queue")

# For so long the same news is not sent again. Whoever has heard it looks once more
# when that time is over, so nothing is overlooked: see processes/pace.py.
SILENCE = 0.01
MOST_REMEMBERED = 1000

EVERY_QUEUE = frozenset[str]()


def wake(database: str, queues: Iterable[str] = EVERY_QUEUE) -> None:
    """Tell idle workers that these queues have ready jobs; none named means any.

    Inside a transaction the news waits for its commit. Several pieces are sent as one.
    """
    connection = connections[database]
    if connection.vendor != "postgresql" or not current().notifications:
        return
    if not connection.in_atomic_block:
        # A transaction that was begun by hand has no hooks, and is not ours to slow.
        if connection.get_autocommit():
            _send(database, frozenset(queues))
    elif not is_inside_a_test(database):
        # In a test nothing is ever committed, and somebody may count the hooks.
        news = _news_of(connection)
        news.add(queues)
        # Each time: a savepoint that is rolled back takes its hooks along.
        on_commit(database, news.send)


def tell_of_cancellation(database: str) -> None:
    """Tell workers that somebody wants the end of a job, when that is committed."""
    _tell_after_commit(database, lambda: store_for(database).tell_of_cancellation())


def tell_of_tuning(database: str) -> None:
    """Tell workers that somebody wants them to change, when that is committed."""
    _tell_after_commit(database, lambda: store_for(database).tell_of_tuning())


def _tell_after_commit(database: str, tell: Callable[[], None]) -> None:
    if connections[database].vendor == "postgresql" and current().notifications:
        telling = partial(_tell, tell)
        transaction.on_commit(telling, using=database, robust=True)


def _tell(tell: Callable[[], None]) -> None:
    try:
        tell()
    except Exception as error:
        # Workers ask for it now and then.
        logger.debug("Workers could not be notified: %s", error)


class News:
    """What a transaction will have to tell when it has committed."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._queues: set[str] = set()
        self._is_for_all = False

    def add(self, queues: Iterable[str]) -> None:
        names = frozenset(queues)
        self._queues |= names
        self._is_for_all |= not names

    def send(self) -> None:
        """Send all of it, unless an earlier hook of the transaction has done so."""
        if self._queues or self._is_for_all:
            told = EVERY_QUEUE if self._is_for_all else frozenset(self._queues)
            self._queues.clear()
            self._is_for_all = False
            _send(self._database, told)


def _news_of(connection: BaseDatabaseWrapper) -> News:
    """One for each connection. What a rollback leaves in it wakes in vain, no more."""
    news: News | None = getattr(connection, "rq_news", None)
    if news is None:
        news = News(connection.alias)
        connection.rq_news = news  # type: ignore[attr-defined]
    return news


_sent_at: dict[tuple[str, frozenset[str]], float] = {}


def _send(database: str, queues: frozenset[str]) -> None:
    now = time.monotonic()
    news = database, queues
    if now - _sent_at.get(news, -SILENCE) < SILENCE:
        return
    try:
        store_for(database).notify(queues)
    except Exception as error:
        # The jobs are stored, and will be found by polling.
        logger.debug("Workers could not be notified: %s", error)
        return
    if len(_sent_at) > MOST_REMEMBERED:
        _sent_at.clear()
    # The moment before: news that was sent later is never taken for earlier.
    _sent_at[news] = now
