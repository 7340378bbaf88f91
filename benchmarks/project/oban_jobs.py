"""The job of oban, which finds it by this module's name."""

from oban import job

from benchmarks.marks import mark


@job()
async def work(number: int) -> None:
    """Leave a mark."""
    mark(number)
