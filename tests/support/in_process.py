"""A worker inside the test's own process: its parts are at hand, its loop is not."""

import time
from contextlib import contextmanager

from robust_queue.configuration import WorkerConfiguration
from robust_queue.processes.actor import Surroundings
from robust_queue.processes.page import Page
from robust_queue.processes.wakeup import Wakeup
from robust_queue.processes.worker import Worker
from tests.support.processes import a_process

PATIENCE = 30


class InProcess:
    """Takes the turns of a worker that a child would take."""

    def __init__(self, room=0, **configuration):
        # Else whoever declares an isolated task anywhere would make all of them fork.
        given = {"polling_interval": 0.02, "isolated": 0, **configuration}
        options = WorkerConfiguration(**given)
        self.wakeup = Wakeup()
        at_once = options.threads + options.coroutines + options.most_isolated
        self.page = Page(at_once + room)
        self.trusts = True
        around = Surroundings(
            identity=a_process(),
            name="worker",
            page=self.page,
            trusts=lambda: self.trusts,
            wake=self.wakeup.set,
            wake_supervisor=lambda: None,
        )
        self.worker = Worker(options, database="default", around=around)

    def until(self, fact):
        """Take turns until the fact is there."""
        end = time.monotonic() + PATIENCE
        while not (found := fact()):
            assert time.monotonic() < end, "It did not come true."
            self.wakeup.wait(min(self.worker.turn(), 0.02))
        return found

    def drain(self):
        """Take turns until everything that was taken is settled."""
        self.until(lambda: not self.worker.is_busy)


@contextmanager
def in_process(**configuration):
    """A worker for the block; with ``room`` for so many jobs beyond those that run."""
    each = InProcess(**configuration)
    each.worker.prepare()
    each.worker.start()
    try:
        yield each
    finally:
        each.worker.stop()
        each.worker.give_up()
        each.worker.finish(timeout=1.0)
