"""Which queues a worker outside serves: those it asks for, if its token allows."""

from collections.abc import Sequence

from robust_queue import registry
from robust_queue.lifecycle.queues import is_known, known_names
from robust_queue.scopes import Scopes

from .problems import forbidden, invalid


def served_queues(
    database: str, wanted: Sequence[str], scopes: Scopes
) -> tuple[str, ...]:
    """The queues to serve, in order; a problem if one is not known, or not allowed."""
    if not wanted:
        return _usual(scopes)
    # In this order: of what is not theirs, nobody is told whether it is there.
    for each in wanted:
        if not scopes.allows("work", each):
            raise forbidden(f"This takes the scope work:{each}.")
    _refuse_unknown(database, wanted)
    return tuple(dict.fromkeys(wanted))


def _usual(scopes: Scopes) -> tuple[str, ...]:
    """Of whoever says nothing: external queues, and what its token names.

    Not everything that is allowed: who may serve all queues would take jobs that only
    workers of our own can do.
    """
    external = sorted(registry.external_queues())
    allowed = [each for each in external if scopes.allows("work", each)]
    patterns = scopes.patterns("work")
    named = [each for each in patterns if not each.endswith("*")]
    beginnings = [each for each in patterns if each.endswith("*") and each != "*"]
    found = tuple(dict.fromkeys([*named, *allowed])) or tuple(beginnings)
    if not found:
        raise invalid(
            "No external task has a queue that this token allows: name the queues to "
            "serve in `queues`.",
            "unknown_queue",
        )
    return found


def _refuse_unknown(database: str, wanted: Sequence[str]) -> None:
    plain = {each for each in wanted if not each.endswith("*")}
    if any("*" in each[:-1] for each in wanted):
        raise invalid("A queue has '*' only at its end.", "unknown_queue")
    unlisted = sorted(plain - known_names(database)) if plain else []
    # Some are told of by what is scheduled, or was, only.
    unknown = [each for each in unlisted if not is_known(database, each)]
    if unknown:
        raise invalid(f"No such queue: {', '.join(unknown)}.", "unknown_queue")
