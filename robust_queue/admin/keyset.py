"""Turning pages by the row at which the last one ended.

The ten thousandth page costs as much as the first: no row is read to be passed over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from robust_queue.lifecycle.search import Bounds, bounded
from robust_queue.lifecycle.search_conditions import id_in

OLDER = "older"
NEWER = "newer"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: at the newest row, or beyond one that is known."""

    beyond: UUID | None = None
    is_upward: bool = False

    @classmethod
    def named_in(cls, parameters: Mapping[str, str]) -> "Place":
        """The place that an address names. What is no id names the newest row."""
        for name in (OLDER, NEWER):
            identity = id_in(parameters.get(name, ""))
            if identity is not None:
                return cls(identity, is_upward=name == NEWER)
        return cls()

    @property
    def order(self) -> str:
        return "pk" if self.is_upward else "-pk"

    def bounds(self, edge: UUID | None = None) -> Bounds:
        """From here on, and no further than the edge."""
        near, far = ("gt", "lte") if self.is_upward else ("lt", "gte")
        named = {f"pk__{near}": self.beyond, f"pk__{far}": edge}
        return {lookup: pk for lookup, pk in named.items() if pk is not None}


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, the newest first, and the ways to those around them."""

    rows: list[Any]
    is_newest: bool = True
    newer: UUID | None = None
    older: UUID | None = None
    # There are rows beyond those that were looked at.
    ends_early: bool = False


@dataclass(frozen=True, slots=True)
class Book:
    """Rows that match, to be read in pages.

    Where no index finds them, they are looked for among so many rows of ``searched``
    per page; the next page looks further.
    """

    matching: QuerySet[Any]
    size: int
    searched: QuerySet[Any] | None = None
    stretch: int = 0
    # The relation whose primary key is to be bounded as well, so that its own index
    # leads to the place.
    relation: str = ""

    def open(self, place: Place) -> Page:
        """The page at that place; the newest one if nothing is above it."""
        edge = self._edge(place)
        found = self._from(place, edge)
        rows = found[: self.size]
        on = rows[-1].pk if len(found) > self.size else edge
        if place.is_upward:
            return self._upward(rows, on) if on else self.open(Place())
        is_newest = place.beyond is None
        newer = None if is_newest or not rows else rows[0].pk
        ends_early = edge is not None and on == edge
        return Page(rows, is_newest, newer, older=on, ends_early=ends_early)

    def _upward(self, rows: list[Any], on: UUID) -> Page:
        older = rows[0].pk if rows else on
        return Page(rows[::-1], is_newest=False, newer=on, older=older)

    def _edge(self, place: Place) -> UUID | None:
        """The last row to be looked at, if it is not the last of all."""
        if self.searched is None:
            return None
        rows = self.searched.filter(**place.bounds()).order_by(place.order)
        last = rows.values_list("pk", flat=True)[self.stretch - 1 : self.stretch + 1]
        edge, *beyond = [*last] or [None]
        return edge if beyond else None

    def _from(self, place: Place, edge: UUID | None) -> list[Any]:
        rows = bounded(self.matching, place.bounds(edge), self.relation)
        return [*rows.order_by(place.order)[: self.size + 1]]
