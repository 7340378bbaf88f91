"""The application of procrastinate, for its worker."""

import os

from procrastinate import App, PsycopgConnector

from benchmarks.marks import mark

app = App(
    connector=PsycopgConnector(
        conninfo=os.environ["BENCH_DATABASE_URL"],
        max_size=int(os.environ.get("BENCH_POOL", "4")),
    )
)


@app.task(name="work")
def work(number: int) -> None:
    """Leave a mark."""
    mark(number)


@app.task(name="work_async")
async def work_async(number: int) -> None:
    """Leave a mark, on the event loop."""
    mark(number)
