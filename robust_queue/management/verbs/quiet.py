"""``manage.py robust_queue quiet``, ``wake`` and ``stop``: about single processes."""

from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.management import CommandError
from django.core.management.base import OutputWrapper

from robust_queue.exceptions import TuningError
from robust_queue.lifecycle.quiet import (
    quiet_process,
    stop_process,
    supervisors,
    wake_process,
)
from robust_queue.models import Process


@dataclass(frozen=True, slots=True)
class Order:
    """A verb for workers, or for supervisors and all that is theirs."""

    HELP: str
    does: Callable[[str, UUID | str], Process]
    # What is said then, of a worker and of a supervisor.
    said: str
    said_of_all: str

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add what may stand behind the verb."""
        parser.add_argument(
            "processes",
            nargs="*",
            metavar="PROCESS",
            help="the name of a worker or supervisor, or the beginning of one",
        )
        parser.add_argument("--all", action="store_true", help="all live supervisors")

    def run(self, database: str, options: dict[str, Any], out: OutputWrapper) -> None:
        """Ask it of those that the options name; go on where somebody is not there."""
        refusals = []
        for name in _names(database, options):
            try:
                found = self.does(database, name)
            except TuningError as error:
                refusals.append(str(error))
            else:
                is_chief = found.kind == "Supervisor"
                said = self.said_of_all if is_chief else self.said
                out.write(said % found.name)
        if refusals:
            raise CommandError("\n".join(dict.fromkeys(refusals)))


QUIET = Order(
    "have processes finish what they run and take nothing new",
    quiet_process,
    "%s is asked to be quiet.",
    "All workers of %s are asked to be quiet.",
)
WAKE = Order(
    "have quiet processes take jobs again",
    wake_process,
    "%s is asked to go on.",
    "All workers of %s are asked to go on.",
)
STOP = Order(
    "restart a worker, or stop a supervisor, when what it runs is over",
    stop_process,
    "%s is asked to end, and will be replaced.",
    "%s is asked to stop, with all that it has started.",
)


def _names(database: str, options: dict[str, Any]) -> list[str]:
    if bool(options["processes"]) == options["all"]:
        problem = "Which? Give names of processes, or --all."
        raise CommandError(problem, returncode=2)
    if options["processes"]:
        return list(dict.fromkeys(options["processes"]))
    found = [str(each.pk) for each in supervisors(database)]
    if not found:
        raise CommandError("No supervisor is alive.")
    return found
