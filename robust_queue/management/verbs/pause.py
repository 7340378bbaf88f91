"""``manage.py robust_queue pause``: queues give out no work, tasks are not begun."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper

from robust_queue.lifecycle.pause import pause
from robust_queue.lifecycle.pause_task import pause_task

from .choosing import coming_moment
from .naming import add_names, named, told_plainly
from .tables import moment

HELP = "stop giving out jobs of queues, or beginning those of a task; what runs goes on"


def add_arguments(parser: ArgumentParser) -> None:
    """Add what may stand behind the verb."""
    add_names(parser)
    parser.add_argument(
        "--until",
        dest="pause_until",
        type=coming_moment,
        metavar="WHEN",
        help="when it ends by itself: 2026-11-18T09:30, or so much later: 90s, 15m, "
        "2h, 7d; without it, when it is resumed",
    )


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Pause what the options name."""
    until = options["pause_until"]
    end = f" until {moment(until)}" if until else ""
    verbs = {"Queue": pause, "Task": pause_task}
    for kind, name in named(options):
        with told_plainly():
            is_new = verbs[kind](database, name, until=until)
        # What was paused already has got another end, if one was given.
        before = "" if is_new or end else " already"
        out.write(f"{kind} {name!r} is{before} paused{end}.")
