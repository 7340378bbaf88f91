"""The application of Celery, with Redis as its broker and no results."""

import os

from celery import Celery

from benchmarks.marks import mark

app = Celery("bench", broker=os.environ["BENCH_DATABASE_URL"])
app.conf.broker_connection_retry_on_startup = True
if prefetch := os.environ.get("BENCH_PREFETCH"):
    app.conf.worker_prefetch_multiplier = int(prefetch)


@app.task(name="work", ignore_result=True)
def work(number: int) -> None:
    """Leave a mark."""
    mark(number)
