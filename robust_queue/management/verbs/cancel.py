"""``manage.py robust_queue cancel``: jobs that wait or run are ended."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper

from robust_queue.lifecycle.cancel import cancel, cancel_matching

from .changing import Change, add_choices, carry_out

HELP = "end jobs that wait, and ask those that run to end"

STATES = ("ready", "scheduled", "blocked", "claimed")

CANCEL = Change(
    verb="cancel",
    done="cancelled, or asked to end",
    states=STATES,
    one=cancel,
    matching=cancel_matching,
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add what may stand behind the verb."""
    add_choices(parser, CANCEL, STATES)


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Cancel the jobs that the options name."""
    carry_out(CANCEL, database, options, out)
