"""A task that recurs every second, for supervisors that tests start."""

from robust_queue import recurring, task
from tests.testapp.process_tasks import leave_mark


@recurring(schedule="* * * * * *", key="every second")
@task
def every_second():
    leave_mark("every second")
