"""Outcomes as bytes, for the page: written for every job, read only after a death."""

import marshal
import pickle
from dataclasses import fields
from datetime import UTC, datetime
from operator import attrgetter
from uuid import UUID

from robust_queue.stores.rows import Failed, Finished, Outcome, Snoozed

# All fields but those that the record has anyway, and moments as numbers: for every job
# that is run, a pickled instance would take many times as long.
_PLAIN = b"="  # which no pickle begins with
_KINDS: tuple[type[Outcome], ...] = (Finished, Failed, Snoozed)
_LEFT_OUT = ("job_id", "token", "started_at", "finished_at")
_NAMES = [
    [each.name for each in fields(kind) if each.name not in _LEFT_OUT]
    for kind in _KINDS
]
_VALUES = {kind: attrgetter(*_NAMES[i]) for i, kind in enumerate(_KINDS)}


def packed(outcome: Outcome) -> bytes:
    """What the record of its claim does not tell."""
    # As now() has made them: in UTC, or without a zone.
    kind, started, finished = type(outcome), outcome.started_at, outcome.finished_at
    facts = (
        _KINDS.index(kind),
        _VALUES[kind](outcome),
        finished.tzinfo is not None,
        started.replace(tzinfo=UTC).timestamp(),
        finished.replace(tzinfo=UTC).timestamp(),
    )
    # The fastest that there is, for plain values only. A failure has others.
    return _PLAIN + marshal.dumps(facts) if kind is Finished else pickle.dumps(facts)


def unpacked(kept: bytes, **ids: UUID) -> Outcome:
    """The outcome of the claim of these ids."""
    # Written by this very program a moment ago; nobody else reaches this memory.
    is_plain = kept.startswith(_PLAIN)
    facts = marshal.loads(kept[1:]) if is_plain else pickle.loads(kept)  # noqa: S301, S302
    kind, values, is_aware, *moments = facts
    zone = UTC if is_aware else None
    started, finished = (datetime.fromtimestamp(each, UTC) for each in moments)
    outcome: Outcome = _KINDS[kind](
        **ids,
        **dict(zip(_NAMES[kind], values, strict=True)),
        started_at=started.replace(tzinfo=zone),
        finished_at=finished.replace(tzinfo=zone),
    )
    return outcome
