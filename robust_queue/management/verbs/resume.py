"""``manage.py robust_queue resume``: what is paused goes on."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper

from robust_queue.lifecycle.pause import resume
from robust_queue.lifecycle.pause_task import resume_task

from .naming import add_names, named, told_plainly

HELP = "give out jobs of paused queues again, or begin those of a paused task"


def add_arguments(parser: ArgumentParser) -> None:
    """Add what may stand behind the verb."""
    add_names(parser)


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Resume what the options name."""
    verbs = {"Queue": resume, "Task": resume_task}
    for kind, name in named(options):
        with told_plainly():
            was_paused = verbs[kind](database, name)
        before = "" if was_paused else " already"
        out.write(f"{kind} {name!r} is{before} open.")
