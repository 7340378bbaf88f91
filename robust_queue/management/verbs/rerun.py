"""``manage.py robust_queue rerun``: a job runs anew, as one that differs a little."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management import CommandError
from django.core.management.base import OutputWrapper

from robust_queue.arguments import load_call
from robust_queue.lifecycle.rerun import REFUSALS, rerun

from .choosing import coming_moment

HELP = "run a job that is over, or waits, anew, with something changed if you like"


def add_arguments(parser: ArgumentParser) -> None:
    """Add what may stand behind the verb."""
    parser.add_argument("id", type=UUID, metavar="ID", help="the id of the job")
    parser.add_argument(
        "--arguments",
        metavar="JSON",
        help='its arguments, such as {"args": [42], "kwargs": {"to": "ada"}}',
    )
    parser.add_argument("--queue", metavar="NAME", help="the queue to run it in")
    parser.add_argument("--priority", type=int, metavar="N", help="its priority")
    parser.add_argument(
        "--run-after",
        type=coming_moment,
        metavar="WHEN",
        help="not before: 2026-11-18T09:30, or so much later: 90s, 15m, 2h, 7d",
    )


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Have the job run as a new one; what is not given stays as it was."""
    try:
        args, kwargs = _call(options["arguments"])
        result = rerun(
            database,
            options["id"],
            args=args,
            kwargs=kwargs,
            queue_name=options["queue"],
            priority=options["priority"],
            run_after=options["run_after"],
        )
    except REFUSALS as refusal:
        raise CommandError(str(refusal)) from refusal
    out.write(f"Job {options['id']} runs anew as job {result.id}.")


def _call(text: str | None) -> tuple[list[Any] | None, dict[str, Any] | None]:
    return (None, None) if text is None else load_call(text)
