"""Schedulers that go by a clock of the tests, which is quicker than time and steps.

A supervisor that is told to look for tasks here does what RQ_CLOCKWORK names: a JSON
object of functions below, each with its argument.
"""

import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

from robust_queue.lifecycle import install, recur
from robust_queue.processes import reserve, scheduler

VARIABLE = "RQ_CLOCKWORK"


class Clock:
    """A clock in a file: what it showed at some moment, and how fast it goes."""

    def __init__(self, path):
        self._path = Path(path)

    @property
    def path(self):
        return str(self._path)

    def now(self):
        shown, since, rate = json.loads(self._path.read_text())
        passed = time.monotonic() - since
        return datetime.fromtimestamp(shown + rate * passed, UTC)

    def set(self, moment, *, rate):
        """Show this moment now; a rate of nought stops it."""
        written = json.dumps([moment.timestamp(), time.monotonic(), rate])
        # In one go: others read it all the time.
        fresh = self._path.with_suffix(".fresh")
        fresh.write_text(written)
        fresh.replace(self._path)


def go_by(path):
    """Have schedulers ask the clock in this file what time it is."""
    shown = SimpleNamespace(now=Clock(path).now)
    for module in (scheduler, recur, install):
        module.timezone = shown


def share(path):
    """Have them take that one for the clock of the database."""
    install._time_of = lambda rows: Clock(path).now()


def hurry(rate):
    """Have them do everything that much sooner."""
    turn = scheduler.Scheduler.turn

    def hurried(self):
        return turn(self) / rate

    scheduler.Scheduler.turn = hurried
    scheduler.BETWEEN_INSPECTIONS /= rate


def look_often(seconds):
    """Have supervisors without a scheduler look that often whether they need one."""
    reserve.BETWEEN_LOOKS = seconds


for _name, _argument in json.loads(os.environ.get(VARIABLE, "{}")).items():
    getattr(sys.modules[__name__], _name)(_argument)
