"""``manage.py robust_queue retry``: failed jobs go back to their queues."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper

from robust_queue.lifecycle.retry import retry, retry_matching

from .changing import Change, add_choices, carry_out

HELP = "send failed jobs back to their queues, for one more attempt"

STATES = ("failed",)

RETRY = Change(
    verb="retry", done="retried", states=STATES, one=retry, matching=retry_matching
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add what may stand behind the verb."""
    add_choices(parser, RETRY, STATES)


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Retry the jobs that the options name."""
    carry_out(RETRY, database, options, out)
