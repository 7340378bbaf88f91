"""Tasks for the timetables of tests. Each is told under which key it recurs."""

import time

from robust_queue import Unique, task

# Jobs stay where they are, unless somebody serves this queue.
SERVED = "served"


@task(queue_name="unserved")
def tick(key, version=0):
    return key, version


@task(queue_name=SERVED)
def work(key, seconds=0.0):
    time.sleep(seconds)


@task(queue_name=SERVED, unique=Unique())
def work_alone(key, seconds=0.0):
    time.sleep(seconds)


@task(backend="immediate")
def at_once(key):
    return key
