"""``manage.py robust_queue discard``: failed or waiting jobs are deleted."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import OutputWrapper

from robust_queue.exceptions import UndiscardableError
from robust_queue.lifecycle.discard import discard, discard_matching

from .changing import Change, add_choices, carry_out

HELP = "delete jobs that have failed, or wait; what runs is left alone"

STATES = ("failed", "scheduled", "ready", "blocked")


def _discard(database: str, job_id: UUID) -> bool:
    try:
        return discard(database, job_id)
    except UndiscardableError:
        return False


DISCARD = Change(
    verb="discard",
    done="discarded",
    states=STATES,
    one=_discard,
    matching=discard_matching,
    is_final=True,
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add what may stand behind the verb."""
    add_choices(parser, DISCARD, STATES)


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Discard the jobs that the options name."""
    carry_out(DISCARD, database, options, out)
