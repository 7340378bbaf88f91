"""The function of RQ, found by this module's name."""

from benchmarks.marks import mark


def work(number: int) -> None:
    """Leave a mark."""
    mark(number)
