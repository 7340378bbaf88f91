"""Queues and tasks that a verb is about, as the command line names them."""

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import CommandError

from robust_queue.compat import InvalidTask


def add_names(parser: ArgumentParser) -> None:
    """Add names of queues, and an option for tasks."""
    parser.add_argument("names", nargs="*", metavar="QUEUE", help="names of queues")
    parser.add_argument(
        "--task",
        action="append",
        default=[],
        dest="task_paths",
        metavar="PATH",
        help="the whole path of a task; may be given several times",
    )


def named(options: dict[str, Any]) -> list[tuple[str, str]]:
    """What is meant, each with the word for it."""
    found = [("Queue", each) for each in dict.fromkeys(options["names"])]
    found += [("Task", each) for each in dict.fromkeys(options["task_paths"])]
    if not found:
        problem = "Which? Give the names of queues, or --task."
        raise CommandError(problem, returncode=2)
    return found


@contextmanager
def told_plainly() -> Iterator[None]:
    """For a block that may refuse what was given."""
    try:
        yield
    except (InvalidTask, ValueError) as error:
        raise CommandError(str(error)) from error
