"""The actor of Dramatiq, with Redis as its broker and no results."""

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.marks import mark

broker = RedisBroker(url=os.environ["BENCH_DATABASE_URL"])
dramatiq.set_broker(broker)


@dramatiq.actor
def work(number: int) -> None:
    """Leave a mark."""
    mark(number)
