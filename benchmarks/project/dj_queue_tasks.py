"""The task of dj-queue that is limited, in the way its documentation shows."""

from dj_queue.api import concurrency
from django.tasks import task

from benchmarks.marks import mark

# Three hours: the queue is filled once for all repeats, and must not be too old for the
# last of them.
LONGER_THAN_A_RUN = 3 * 60 * 60


@task
@concurrency(key="hot", limit=1, duration=LONGER_THAN_A_RUN, on_conflict="block")
def work_hot(number: int) -> None:
    """Leave a mark, one at a time."""
    mark(number)
