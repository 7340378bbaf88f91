"""Something that recurs, so that Robust Queue starts its scheduler as well."""

from benchmarks.marks import mark
from robust_queue import recurring, task


@recurring(schedule="0 0 29 2 *", key="leap day")
@task
def on_leap_days() -> None:
    """Leave a mark, hardly ever."""
    mark(0)
