"""What has failed, put together by what has failed alike.

A thousand failures are rarely a thousand problems. Only looks; what is to be done to
all of a group is done by ``retry_matching`` and ``discard_matching``.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left

from robust_queue.models import FailedExecution

# Older failures are not looked at: who has more of them clears the latest first.
MOST_FAILURES = 4_000
MOST_GROUPS = 200
MESSAGES_SHOWN = 3
# Characters of a message that are read: a first line says enough.
HEAD = 300

# What differs between two messages that mean the same.
_VARYING = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|0x[0-9a-fA-F]+"
    r"|\b[0-9a-fA-F]{16,}\b"
    r"|\d+(?:[.,:]\d+)*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What failures of one group have in common, and nothing else is like it.

    Tells the verbs which rows are meant. Unlike ``Filter`` it knows an exception by its
    whole path only, and takes nothing as left out: an empty name is a name.
    """

    task_path: str
    exception_class: str
    kind: str

    @property
    def state(self) -> str:
        return "failed"

    def rows(self, database: str) -> Iterator[QuerySet[Any]]:
        yield FailedExecution.objects.using(database).filter(
            job__task_path=self.task_path,
            exception_class=self.exception_class,
            kind=self.kind,
        )


@dataclass(slots=True)
class FailureGroup:
    """Failures that are alike: how many, when, and what they said."""

    fingerprint: Fingerprint
    first_at: datetime
    last_at: datetime
    # The first line of the latest one, as it was.
    example: str
    count: int = 0
    # First lines with their numbers and ids replaced, and how often each was met.
    messages: Counter[str] = field(default_factory=Counter)

    def add(self, message: str, at: datetime) -> None:
        self.count += 1
        self.first_at = min(self.first_at, at)
        self.messages[shape_of(message)] += 1

    @property
    def usual_messages(self) -> list[tuple[str, int]]:
        return self.messages.most_common(MESSAGES_SHOWN)

    @property
    def other_messages(self) -> int:
        """How many more there are."""
        return max(len(self.messages) - MESSAGES_SHOWN, 0)


@dataclass(frozen=True, slots=True)
class Failures:
    """The groups, the largest first, and whether that is all there is."""

    groups: list[FailureGroup]
    looked_at: int
    # More have failed than were looked at.
    is_cut: bool = False
    left_out: int = 0


def failures(database: str, *, most: int | None = None) -> Failures:
    """The latest failures, by task, exception and kind. One statement."""
    most = MOST_FAILURES if most is None else most
    latest = FailedExecution.objects.using(database).order_by("-finished_at")
    facts = latest.annotate(head=Left("message", HEAD)).values_list(
        "job__task_path", "exception_class", "kind", "head", "finished_at"
    )
    found = list(facts[: most + 1])
    looked_at = found[:most]
    groups = sorted(_grouped(looked_at), key=_weight, reverse=True)
    return Failures(
        groups[:MOST_GROUPS],
        looked_at=len(looked_at),
        is_cut=len(found) > len(looked_at),
        left_out=max(len(groups) - MOST_GROUPS, 0),
    )


def count_up_to(database: str, fingerprint: Fingerprint, most: int) -> int:
    """How many failures a group has, counted no further than that."""
    (rows,) = fingerprint.rows(database)
    return int(rows.order_by().values("pk")[:most].count())


def shape_of(message: str) -> str:
    """The first line of a message, without what differs from job to job."""
    return _VARYING.sub("#", first_line(message))


def first_line(message: str) -> str:
    """The first line that says anything."""
    return message.strip().partition("\n")[0].strip()


def _grouped(facts: list[tuple[Any, ...]]) -> list[FailureGroup]:
    groups: dict[tuple[str, str, str], FailureGroup] = {}
    for path, exception, kind, head, at in facts:
        group = groups.get((path, exception, kind))
        if group is None:
            alike = Fingerprint(task_path=path, exception_class=exception, kind=kind)
            # The latest comes first.
            group = FailureGroup(alike, at, at, first_line(head))
            groups[path, exception, kind] = group
        group.add(head, at)
    return list(groups.values())


def _weight(group: FailureGroup) -> tuple[int, datetime]:
    return group.count, group.last_at
