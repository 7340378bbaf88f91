"""What the verbs that change jobs have in common."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.management import CommandError
from django.core.management.base import OutputWrapper

from robust_queue.lifecycle.selection import (
    PENDING,
    PENDING_STATES,
    Filter,
    Tally,
    count,
    standing,
    states_within,
)

from .choosing import add_filters, filter_of, is_narrowed

# Nobody needs to be asked about as many as fit on a screen.
LARGE = 100

_REASONS = {"claimed": "claimed by a worker"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that is done to jobs, and the words for it."""

    verb: str
    done: str
    # In which it can be done at all.
    states: Collection[str]
    one: Callable[[str, UUID], bool]
    matching: Callable[..., Tally]
    # Is there a way back?
    is_final: bool = False


def add_choices(parser: ArgumentParser, change: Change, states: Sequence[str]) -> None:
    """Add the options that say which jobs, and how."""
    parser.add_argument("ids", nargs="*", type=UUID, metavar="ID", help="ids of jobs")
    parser.add_argument(
        "--all", action="store_true", help="all of them, if nothing else narrows it"
    )
    add_filters(parser)
    pending = [each for each in PENDING_STATES if each in states]
    parser.add_argument(
        "--state",
        choices=[*states, PENDING] if pending else states,
        default=states[0],
        help=f"where the jobs stand; {states[0]}, unless something else is said"
        + (f"; {PENDING} means {', '.join(pending)}" if pending else ""),
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        dest="only_counts",
        help=f"tell how many would be {change.done}, and change nothing",
    )
    parser.add_argument("--yes", action="store_true", help="ask no questions")


def carry_out(
    change: Change, database: str, options: dict[str, Any], out: OutputWrapper
) -> None:
    """Do it to the jobs that the options name."""
    _check(options)
    if options["ids"]:
        _to_each(change, database, options, out)
    else:
        _to_all(change, database, options, out)


def _check(options: dict[str, Any]) -> None:
    is_about_many = options["all"] or is_narrowed(options)
    if options["ids"] and is_about_many:
        problem = "Give either ids, or options that say which jobs are meant."
        raise CommandError(problem, returncode=2)
    # Not by a state alone: to forget the rest of a line must not cost every job.
    if not options["ids"] and not options["all"] and not is_narrowed(options):
        problem = "Which jobs? Give ids, an option such as --task, or --all."
        raise CommandError(problem, returncode=2)


# ── Jobs that are named ────────────────────────────────────────────────────────


def _to_each(
    change: Change, database: str, options: dict[str, Any], out: OutputWrapper
) -> None:
    ids = list(dict.fromkeys(options["ids"]))
    if options["only_counts"]:
        found = standing(database, ids)
        left = [each for each in ids if found.get(each) not in change.states]
    else:
        left = [each for each in ids if not change.one(database, each)]
    done = "would be " if options["only_counts"] else ""
    out.write(f"{jobs(len(ids) - len(left))} {done}{change.done}.")
    if left:
        found = standing(database, left)
        raise CommandError("\n".join(_excuse(each, found.get(each)) for each in left))


def _excuse(job_id: UUID, state: str | None) -> str:
    words = "unknown" if state is None else _REASONS.get(state, state)
    return f"Job {job_id} is {words}."


# ── Jobs that match ────────────────────────────────────────────────────────────


def _to_all(
    change: Change, database: str, options: dict[str, Any], out: OutputWrapper
) -> None:
    wanted, state = _wanted(change, options), options["state"]
    number = sum(count(database, each) for each in wanted)
    if not number:
        out.write(f"No {state} job matches.")
        return
    if options["only_counts"]:
        out.write(f"{jobs(number, state)} would be {change.done}.")
        return
    out.write(f"{jobs(number, state)} to be {change.done}.")
    if not options["yes"] and not is_agreed(change, number, out):
        raise CommandError(f"Nothing was {change.done}.")
    progress, tally = Progress(out, number), Tally()
    for each in wanted:
        progress.before = tally
        tally += change.matching(database, each, on_progress=progress.show)
    progress.end()
    out.write(_outcome(change, tally))


def _wanted(change: Change, options: dict[str, Any]) -> list[Filter]:
    """The jobs that are meant, in the direction of the arrows."""
    states = states_within(options["state"])
    meant = [each for each in states if each in change.states]
    return [filter_of({**options, "state": each}) for each in meant]


def is_agreed(change: Change, number: int, out: OutputWrapper) -> bool:
    """Is it small, or can it be undone, or is there nobody to ask, or do they agree?"""
    if not change.is_final or number < LARGE:
        return True
    if not (sys.stdin.isatty() and out.isatty()):
        return True
    answer = input(f"{change.verb.capitalize()} {jobs(number)} for good? [y/N] ")
    return answer.strip().lower() in {"y", "yes"}


def _outcome(change: Change, tally: Tally) -> str:
    said = f"{jobs(tally.done)} {change.done}."
    if tally.passed_over:
        reasons = ", ".join(
            f"{number:,} {_REASONS.get(reason, reason)}"
            for reason, number in sorted(tally.passed_over.items())
        )
        said += f" Passed over: {reasons}."
    return said


class Progress:
    """A line that tells how far it has got, where somebody looks on."""

    def __init__(self, out: OutputWrapper, number: int) -> None:
        self._out = out
        self._number = number
        self._is_shown = False
        # What was done before this.
        self.before = Tally()

    def show(self, tally: Tally) -> None:
        if self._out.isatty():
            met = self.before.matched + tally.matched
            words = f"\r{met:,} of {self._number:,} …"
            self._out.write(words, ending="")
            self._out.flush()
            self._is_shown = True

    def end(self) -> None:
        if self._is_shown:
            self._out.write("")


def jobs(number: int, state: str = "") -> str:
    """So many jobs, in words."""
    word = "job" if number == 1 else "jobs"
    return f"{number:,} {state} {word}" if state else f"{number:,} {word}"
