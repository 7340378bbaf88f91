"""Looks: what a poll comes to where some queues take turns, or are left out."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from .rows import Selection


class Look(NamedTuple):
    """One look at a queue, or at all queues of a pattern, in the order of its jobs."""

    pattern: str
    # These are looked at on their own, or not at all.
    without: tuple[str, ...]
    # By then a pause may be over.
    now: datetime
    # Whatever is not to be looked at is most often empty.
    expects_nothing_apart: bool = False


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
        first = selection.turn % max(len(sides), 1)
        yield from sides[first:] + sides[:first]


def _sides(pattern: str, selection: Selection) -> list[Look | Turn]:
    last, now, gone = selection.partitioned, selection.now, set(selection.left_out)
    if pattern.endswith("*"):
        apart = {name for name in {*last, *gone} if name.startswith(pattern[:-1])}
        turns = [Turn(each, last[each], now) for each in sorted(apart - gone)]
        return [Look(pattern, tuple(sorted(apart)), now, not turns), *turns]
    if pattern in gone:
        return []
    if pattern in last:
        return [Turn(pattern, last[pattern], now)]
    return [Look(pattern, (), now)]
