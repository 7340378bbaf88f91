"""Looks: what a poll comes to where the partitions of some queues take turns."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from .rows import Selection


class Look(NamedTuple):
    """One look at a queue, or at all queues of a pattern, in the order of its jobs."""

    pattern: str
    # These are looked at on their own.
    without: tuple[str, ...]
    # By then a pause may be over.
    now: datetime


class Turn(NamedTuple):
    """One look at a queue whose partitions take turns, behind the one served last."""

    queue: str
    after: str
    now: datetime


def looks(selection: Selection) -> Iterator[Look | Turn]:
    """The looks of a selection, in order.

    A pattern that covers partitioned queues takes turns as well: each of them, and all
    others together, are the first to be looked at in one of so many turns. So none of
    them can keep another from being served.
    """
    for pattern in selection.patterns:
        sides = _sides(pattern, selection)
        first = selection.turn % len(sides)
        yield from sides[first:] + sides[:first]


def _sides(pattern: str, selection: Selection) -> list[Look | Turn]:
    last, now = selection.partitioned, selection.now
    if pattern.endswith("*"):
        covered = sorted(name for name in last if name.startswith(pattern[:-1]))
        turns = [Turn(each, last[each], now) for each in covered]
        return [Look(pattern, tuple(covered), now), *turns]
    if pattern in last:
        return [Turn(pattern, last[pattern], now)]
    return [Look(pattern, (), now)]
