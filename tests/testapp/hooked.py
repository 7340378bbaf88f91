"""Hooks that tell in a file what they were called for: see witnessed_tasks.py.

A supervisor that is told to look for tasks here has them; some of them do harm.
"""

import os
import sys

import robust_queue
from tests.testapp.witnessed_tasks import tell

VARIABLE = "RQ_HOOKS_FAIL"


@robust_queue.on_start
def supervisor_starts(process):
    tell("supervisor_starts", process.kind)


@robust_queue.on_stop
def supervisor_stops():
    tell("supervisor_stops", "it")


@robust_queue.on_exit
def supervisor_exits():
    tell("supervisor_exits", "it")


@robust_queue.on_worker_start
def worker_starts(process):
    tell("worker_starts", ",".join(process.details["queues"]))


@robust_queue.on_worker_stop
def worker_stops(process):
    tell("worker_stops", process.name)


@robust_queue.on_worker_exit
def worker_exits(process):
    tell("worker_exits", process.name)


@robust_queue.on_dispatcher_start
def dispatcher_starts():
    tell("dispatcher_starts", "it")


@robust_queue.on_process_replaced
def replaced(process):
    tell("replaced", process.kind)


if os.environ.get(VARIABLE):

    @robust_queue.on_start
    @robust_queue.on_worker_start
    @robust_queue.on_worker_stop
    @robust_queue.on_worker_exit
    @robust_queue.on_exit
    def fails():
        raise ValueError("a hook of no use")

    @robust_queue.on_worker_start
    @robust_queue.on_dispatcher_start
    @robust_queue.on_exit
    def exits():
        sys.exit(9)


def hear_of(error):
    """What ``on_thread_error`` names."""
    tell("heard_of", type(error).__name__)
