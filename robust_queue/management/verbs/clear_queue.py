"""``manage.py robust_queue clear-queue``: what waits in a queue is deleted."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import CommandError
from django.core.management.base import OutputWrapper

from robust_queue.lifecycle.discard import WAITING, clear_queue, waiting_states
from robust_queue.lifecycle.names import check_queue_name
from robust_queue.lifecycle.selection import PENDING, Filter, count

from .changing import Progress, is_agreed, jobs
from .discard import DISCARD
from .naming import told_plainly

HELP = "delete all jobs that wait in a queue; what runs is left alone"


def add_arguments(parser: ArgumentParser) -> None:
    """Add what may stand behind the verb."""
    parser.add_argument("name", metavar="QUEUE", help="the name of the queue")
    parser.add_argument(
        "--state",
        action="append",
        choices=[*WAITING, PENDING],
        dest="states",
        default=[],
        help="only those that stand there; may be given several times; "
        f"{PENDING} means all of them",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        dest="only_counts",
        help="tell how many would be discarded, and change nothing",
    )
    parser.add_argument("--yes", action="store_true", help="ask no questions")


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Clear the queue that the options name."""
    name, states = options["name"], options["states"]
    with told_plainly():
        check_queue_name(name)
    meant = waiting_states(states)
    wanted = [Filter(state=each, queue_name=name) for each in meant]
    number = sum(count(database, each) for each in wanted)
    if options["only_counts"] or not number:
        would = " would be" if options["only_counts"] else ""
        out.write(f"{jobs(number)} of queue {name!r}{would} discarded.")
        return
    out.write(f"{jobs(number)} of queue {name!r} to be discarded.")
    if not options["yes"] and not is_agreed(DISCARD, number, out):
        raise CommandError("Nothing was discarded.")
    progress = Progress(out, number)
    done = clear_queue(database, name, meant, on_progress=progress.show)
    progress.end()
    out.write(f"{jobs(done)} discarded.")
