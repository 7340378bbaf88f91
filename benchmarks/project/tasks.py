"""The task of the systems that run what Django's own decorator has declared."""

from django.tasks import task

from benchmarks.marks import mark


@task
def work(number: int) -> None:
    """Leave a mark."""
    mark(number)
