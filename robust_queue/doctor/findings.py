"""What the doctor has to say."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from django.db.models import QuerySet

# As many rows as a finding names one by one.
SHOWN = 100

# A query for offenders as tuples, and how one of them is put into words.
Offenders: TypeAlias = tuple[QuerySet[Any, Any], Callable[..., str]]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong (``problem``), or that someone should know of."""

    severity: Literal["problem", "warning"]
    text: str
    rows: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n  ".join([f"{self.severity}: {self.text}", *self.rows])


def named(*sources: Offenders) -> tuple[str, ...]:
    """The offenders, of which only the first are named and the others counted."""
    shown: list[str] = []
    left = 0
    for rows, describe in sources:
        room = SHOWN - len(shown)
        found = list(rows[: room + 1])
        shown += [describe(*row) for row in found[:room]]
        if len(found) > room:
            left += rows.count() - room
    return bounded(shown, left)


def bounded(shown: Iterable[str], left: int) -> tuple[str, ...]:
    """Rows in words, and how many there are beyond them."""
    return (*shown, f"… and {left:,} more") if left > 0 else tuple(shown)
