"""What a worker holds, and what has come to its end."""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from robust_queue.context import Running
from robust_queue.lifecycle import announce
from robust_queue.lifecycle.perform import Performed
from robust_queue.stores.rows import Claim

if TYPE_CHECKING:
    from .lanes import Lane

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Held:
    """A claim of this worker, and its place on the page."""

    claim: Claim
    slot: int
    lane: "Lane"
    since: float
    # From when on its task may have begun.
    running: Running | None = None
    # When its time is up, by the clock of trust.
    ends: float = math.inf
    # Those that are to be run behind it, one after the other. They have it in common.
    chain: "deque[Held] | None" = None
    # Does it take up room? Who waits for another one to end does not.
    counts: bool = True


@dataclass(slots=True, eq=False)
class Ended:
    """A claim that its lane has done with; nothing came of it if it never began."""

    held: Held
    performed: Performed | None
    is_urgent: bool = False
    # It was taken back: somebody else may be free for it sooner.
    is_recalled: bool = False


def first_of(line: deque[T]) -> T | None:
    """Take the first out of a line, unless somebody else has just taken the last."""
    try:
        return line.popleft()
    except IndexError:
        return None


def heard(done: Iterable[Ended]) -> list[Ended]:
    """Those that somebody is to be told of. Mostly nobody listens to any of them."""
    if announce.is_heard("task_finished", is_from_backport=True):
        return [each for each in done if each.performed and each.performed.is_heard]
    return [each for each in done if each.performed and each.performed.error]
