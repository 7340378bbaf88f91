"""``manage.py robust_queue tune``: a worker changes while it runs."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import CommandError
from django.core.management.base import OutputWrapper

from robust_queue.exceptions import TuningError
from robust_queue.lifecycle.tune import tune
from robust_queue.lifecycle.workers import workers

HELP = "change queues or threads of workers that run"


def add_arguments(parser: ArgumentParser) -> None:
    """Add what may stand behind the verb."""
    parser.add_argument(
        "worker",
        nargs="?",
        metavar="WORKER",
        help="a name, or the beginning of one, as the verb workers lists them",
    )
    parser.add_argument("--all", action="store_true", help="all live workers")
    # The supervisor's own options have the same names.
    parser.add_argument(
        "--threads",
        dest="wished_threads",
        type=int,
        metavar="N",
        help="in how many threads to run tasks",
    )
    parser.add_argument(
        "--queues",
        dest="wished_queues",
        metavar="mail,reports*",
        help="which queues to serve, in this order",
    )
    parser.add_argument(
        "--reset", action="store_true", help="go back to what is configured"
    )


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Tune the workers that the options name."""
    queues = options["wished_queues"]
    wish = {
        "threads": options["wished_threads"],
        "queues": None if queues is None else _listed(queues),
        "reset": options["reset"],
    }
    refusals = []
    for name in _names(database, options):
        try:
            found = tune(database, name, **wish)
        except TuningError as error:
            refusals.append(str(error))
        else:
            out.write(f"{found.name} is asked to change.")
    if refusals:
        raise CommandError("\n".join(dict.fromkeys(refusals)))


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _names(database: str, options: dict[str, Any]) -> list[str]:
    if bool(options["worker"]) == options["all"]:
        raise CommandError("Which? Give the name of a worker, or --all.", returncode=2)
    if options["worker"]:
        return [options["worker"]]
    found = [str(each.id) for each in workers(database)]
    if not found:
        raise CommandError("No worker is alive.")
    return found
