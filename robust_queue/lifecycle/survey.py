"""What there is to be looked after: one look at tables that are mostly empty.

A dispatcher has a dozen things to see to, and nothing to do for most of them. To find
that out table by table would keep an idle database busy.
"""

from typing import NamedTuple

from django.utils import timezone

from robust_queue.stores import store_for


class Survey(NamedTuple):
    """When the next scheduled job is due, and which tables have rows at all."""

    # Seconds; none if it is due, None without any.
    due_in: float | None
    tables: frozenset[str]


def survey(database: str) -> Survey:
    """Look once."""
    moment, tables = store_for(database).survey()
    if moment is None:
        return Survey(None, tables)
    left = (moment - timezone.now()).total_seconds()
    return Survey(max(left, 0.0), tables)
