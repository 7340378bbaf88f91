"""What can be done to jobs, by its name, and in which states they have to be for it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from .cancel import cancel_matching
from .clear import clear_matching
from .discard import discard_matching
from .retry import retry_matching
from .run_now import run_now_matching
from .selection import Filter, Tally, standing


class Verb(NamedTuple):
    """What is done, and to jobs in which states, in the order of the walk."""

    states: tuple[str, ...]
    change: Callable[[str, Filter], Tally]


VERBS = {
    "retry": Verb(("failed",), retry_matching),
    "discard": Verb(("scheduled", "blocked", "ready", "failed"), discard_matching),
    "cancel": Verb(("scheduled", "blocked", "ready", "claimed"), cancel_matching),
    "run_now": Verb(("scheduled",), run_now_matching),
    # Apart from discarding, so that who means what waits does not mean what is done.
    "clear": Verb(("finished",), clear_matching),
}


class Outcome(NamedTuple):
    """How it went, and which jobs were in no state for it."""

    tally: Tally
    left: Mapping[UUID, str]


def do_to(database: str, verb: str, ids: Sequence[UUID]) -> Outcome:
    """Do it to those of the jobs that are in a state for it."""
    found, tally = standing(database, ids), Tally()
    states, change = VERBS[verb]
    for state in (each for each in states if each in found.values()):
        tally += change(database, Filter(state=state, ids=ids))
    left = {
        each: found.get(each, "gone") for each in ids if found.get(each) not in states
    }
    return Outcome(tally, left)
