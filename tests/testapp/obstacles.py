"""Obstacles that tests put into the way of a supervisor and its children.

A supervisor that is told to look for tasks here meets what RQ_OBSTACLES names: a JSON
object of functions below, each with its argument. Most wait for a file to go away.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path

from django.dispatch import receiver

import robust_queue
from robust_queue.compat import signals
from robust_queue.processes import child, listener, page, supervisor, threads, worker


def hang_before_registering(path):
    register = child.ChildProcess._register

    def hanging(self):
        if self._birth.post.kind == "Worker":
            _wait(path)
        register(self)

    child.ChildProcess._register = hanging


def hang_before_working(path):
    start = worker.Worker.start

    def hanging(self):
        _wait(path)
        start(self)

    worker.Worker.start = hanging


def die_in_boot(path):
    start = worker.Worker.start

    def dying(self):
        if Path(path).exists():
            os._exit(9)
        start(self)

    worker.Worker.start = dying


def never_settle(path):
    """What a worker has done stays unrecorded; the file gets a letter for each."""
    settle, finish = worker.settle_and_claim, page.Page.finish

    def blocked(database, outcomes, claiming):
        if outcomes:
            time.sleep(600)
        return settle(database, outcomes, claiming)

    def told(self, slot, outcome):
        finish(self, slot, outcome)
        with Path(path).open("a") as file:
            file.write("x")

    worker.settle_and_claim, page.Page.finish = blocked, told


def listen_slowly(path):
    """Whoever listens for the end of a job named "slow" keeps a thread for as long."""

    @receiver(signals.task_finished, weak=False)
    def listen(sender, task_result, **kwargs):
        if task_result.args == ["slow"]:
            _wait(path)


def hook_slowly(seconds):
    """Workers load something large before they work."""

    @robust_queue.on_worker_start
    def load():
        time.sleep(seconds)


def hold_back(path):
    """A job named "reserved" is taken, and not begun."""
    run = threads.Threads._run

    def held_back(self, held):
        if '"reserved"' in held.claim.arguments:
            _wait(path)
        run(self, held)

    threads.Threads._run = held_back


def probe_often(seconds):
    """Listeners find out sooner whether they hear."""
    listener.BETWEEN_PROBES, listener.PATIENCE = seconds, 1
    listener.LONGEST_SILENCE = 2 * seconds


def live_at(name):
    socket.gethostname = lambda: name


def watch_early(seconds):
    """Supervisors begin to watch their children that soon after their start."""
    supervisor.SLEPT = seconds


def _wait(path):
    while Path(path).exists():
        time.sleep(0.05)


for _name, _argument in json.loads(os.environ.get("RQ_OBSTACLES", "{}")).items():
    getattr(sys.modules[__name__], _name)(_argument)
