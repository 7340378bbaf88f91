"""The verb ``clear``: what the dispatcher does by itself, now and by choice."""

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management import CommandError
from django.core.management.base import OutputWrapper
from django.utils import timezone

from robust_queue.lifecycle.clear import BATCH_SIZE, LARGEST_BATCH, Choice, batches
from robust_queue.stores.clearing import State

from .durations import duration

HELP = "delete jobs that ended long ago"


def add_arguments(parser: ArgumentParser) -> None:
    """Offer what ``clear`` understands."""
    parser.add_argument(
        "--finished", action="store_true", help="jobs that have finished"
    )
    parser.add_argument(
        "--failed", action="store_true", help="jobs that have failed for good"
    )
    parser.add_argument(
        "--older-than",
        type=duration,
        metavar="DURATION",
        help="all that ended longer ago, such as 12h or 30d, whatever tasks and "
        "settings say; without it: each job whose own time is up",
    )
    parser.add_argument("--task", metavar="PATH", help="only jobs of this task")
    parser.add_argument(
        "--batch-size",
        type=_batch_size,
        default=BATCH_SIZE,
        metavar="N",
        help=f"how many to delete in one transaction, {BATCH_SIZE} by default",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        # Before the verb it is meant as well.
        default=SUPPRESS,
        help="delete nothing, tell how many it would be",
    )


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Clear what was asked for, and tell how much it was."""
    choice = Choice(task=options["task"], finished_before=_before(options))
    how = {"size": options["batch_size"], "is_rehearsal": bool(options["dry_run"])}
    progress = _Progress(out)
    for state in _states(options):
        progress.begin(state)
        for batch in batches(database, state, choice, **how):
            progress.show(len(batch.cleared))
    progress.end(is_rehearsal=how["is_rehearsal"])


def _before(options: dict[str, Any]) -> Any:
    if options["older_than"] is None:
        return None
    if not (options["finished"] or options["failed"]):
        raise CommandError(
            "--older-than goes before what tasks and settings say, so choose what it "
            "is about: --finished, --failed or both."
        )
    return timezone.now() - options["older_than"]


def _states(options: dict[str, Any]) -> list[State]:
    states: tuple[State, ...] = ("finished", "failed")
    chosen = [state for state in states if options[state]]
    return chosen or list(states)


def _batch_size(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= LARGEST_BATCH:
        raise ArgumentTypeError(
            f"{text!r} must be a whole number from 1 to {LARGEST_BATCH:,}."
        )
    return int(text)


class _Progress:
    """A line that counts along, for those who look at a terminal; and the last word."""

    def __init__(self, out: OutputWrapper) -> None:
        self._out = out
        self._is_seen = out.isatty()
        self._counts: dict[State, int] = {}

    def begin(self, state: State) -> None:
        self._state = state
        self._counts[state] = 0

    def show(self, count: int) -> None:
        self._counts[self._state] += count
        if self._is_seen:
            self._out.write(f"\r{self._told} …", ending="")
            self._out.flush()

    def end(self, *, is_rehearsal: bool) -> None:
        jobs = "job" if sum(self._counts.values()) == 1 else "jobs"
        cleared = "would be cleared" if is_rehearsal else "cleared"
        begin = "\r" if self._is_seen else ""
        self._out.write(f"{begin}{self._told} {jobs} {cleared}.")

    @property
    def _told(self) -> str:
        counts = self._counts.items()
        return " and ".join(f"{count:,} {state}" for state, count in counts)
