"""The dashboard of a shop that is open: something new every second."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import User
from django.core.management import CommandError

from robust_queue import cancel, tune
from robust_queue.models import ClaimedExecution

from . import exhibits, made_up, trade
from .supervising import Managed, Supervisor, running
from .web import Program, Visitor, WebServer, serving

DATABASE = "default"
NAME = "demo"
PASSWORD = NAME  # told to everybody, and good on this machine only
LONGEST = 30.0

# For ``manage.py robust_queue --config``: nobody serves the letters.
CONFIGURATION = {
    "workers": [
        {"queues": ["default", "mail"], "threads": 3},
        {"queues": ["parcels", "photos", "reports"], "threads": 2},
    ],
    # What runs for an hour need not be waited for.
    "shutdown_timeout": 1,
}

INVITATION = """
The dashboard is open:  {address}/admin/robust_queue/overview/
Log in as:              {name}, with the password {name}

  Overview          an hour of charts, and what looks wrong: letters and labels that
                    nobody serves, photos that are paused
  Jobs              in every state; open one that is blocked, and see why it waits
  Failures          what failed alike; retry a group, and follow it under Operations
  Concurrency keys  who counts the warehouse, and who waits for that
  Processes         quiet a worker, stop one, and see it replaced

The labels wait for a program in Node. With Node 18 or newer, start it in another
terminal, from the folder of manage.py:

  QUEUE_URL={address}/queue/ QUEUE_TOKEN={token} \\
    node example_project/node_worker/shop.mjs

Then Processes shows it under Workers outside, and Jobs what it has drawn.

The charts begin with an hour of made-up history; the rest is real, and goes on.
Ctrl-C stops everything.
"""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """What runs while it is open."""

    supervisor: Supervisor
    server: WebServer
    # For the program that draws labels.
    token: str

    @property
    def invitation(self) -> str:
        address = self.server.address
        return INVITATION.format(address=address, name=NAME, token=self.token)

    def visitor(self) -> Visitor:
        """Somebody who has logged in."""
        visitor = Visitor(self.server.address)
        visitor.log_in(NAME, PASSWORD)
        return visitor

    def stay_open(self) -> None:
        """Sell something now and then, until somebody presses Ctrl-C."""
        while True:
            self.check()
            trade.sell_something()
            time.sleep(trade.PAUSE)

    def check(self) -> None:
        """Refuse to go on alone."""
        for each in (self.supervisor, self.server):
            check_running(each)


@contextmanager
def opened(folder: Path, tell: Callable[[str], None]) -> Iterator[Dashboard]:
    """Have the dashboard open for the block."""
    tell("\nThe dashboard is prepared: a user, an hour of history, something to show.")
    User.objects.create_superuser(NAME, password=PASSWORD)
    made_up.write_history(DATABASE)
    printing, token = exhibits.put_up(), exhibits.let_somebody_draw()
    with _household(folder) as supervisor, serving(folder / "web.log") as server:
        tell("A supervisor with two workers and a web server are started.")
        dashboard = Dashboard(supervisor, server, token)
        _busy(dashboard, printing)
        yield dashboard


def _household(folder: Path) -> AbstractContextManager[Supervisor]:
    config = f"{__name__}.CONFIGURATION"
    return running("--config", config, "--no-reload", log=folder / "open.log")


def _busy(dashboard: Dashboard, printing: str) -> None:
    """Wait until all are there; then ask of them what takes somebody who runs."""
    visitor, running_now = Visitor(dashboard.server.address), ClaimedExecution.objects
    _wait_for(dashboard, visitor.is_let_in)
    _wait_for(dashboard, lambda: running_now.filter(job_id=printing).exists())
    cancel(printing)
    tune(dashboard.supervisor.workers()[0].pk, threads=4)
    exhibits.retry_the_declined(DATABASE, by=NAME)
    exhibits.order_a_label(Program(dashboard.server.address, dashboard.token))
    for event in trade.EVENTS:
        event()


def _wait_for(dashboard: Dashboard, fact: Callable[[], bool]) -> None:
    ends = time.monotonic() + LONGEST
    while not fact():
        dashboard.check()
        if time.monotonic() > ends:
            raise CommandError(f"Nothing has happened for {LONGEST:.0f} seconds.")
        time.sleep(0.1)


def check_running(process: Managed) -> None:
    """A CommandError with all that it has said if it has ended."""
    if not process.is_running:
        raise CommandError(f"It has ended:\n{process.log.read_text()}")
