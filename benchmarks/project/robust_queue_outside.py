"""What workers outside do. Only where they are measured: its queue is left to them."""

from robust_queue import external_task

# They leave its marks.
work_outside = external_task("work-outside", queue_name="outside")
