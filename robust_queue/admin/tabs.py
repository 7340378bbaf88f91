"""The tabs above the list of jobs: one per state, with how many are there."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from django.db.models import IntegerField, QuerySet, Subquery
from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.search import TABLE_OF
from robust_queue.lifecycle.selection import PENDING, PENDING_STATES
from robust_queue.models import Job

from .base import REACH

STATE = "state"

LABELS = {
    "": _("all"),
    PENDING: _("pending"),
    "scheduled": _("scheduled"),
    "ready": _("ready"),
    "blocked": _("blocked"),
    "claimed": _("running"),
    "failed": _("failed"),
    "finished": _("finished"),
}


class Tab(NamedTuple):
    """A state, how many jobs are there, and the way to them."""

    label: Any
    address: str
    number: str
    is_current: bool


class HowMany(Subquery):
    """The number of rows, up to one more than anybody is told."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) counted)"

    def __init__(self, rows: QuerySet[Any]) -> None:
        counted = rows.order_by().values("pk")[: REACH + 1]
        super().__init__(counted, output_field=IntegerField())


def tabs(
    current: str,
    address_of: Callable[[dict[str, Any]], str],
    counts: Mapping[str, int],
) -> list[Tab]:
    """One for each state, with how many jobs are there as far as that is known."""
    return [
        Tab(
            label,
            address_of({STATE: state or None}),
            shown_count(counts[state]) if counts else "",
            state == current,
        )
        for state, label in LABELS.items()
    ]


def counts_of_states(database: str) -> dict[str, int]:
    """How many jobs stand where, none of them counted far beyond what is shown."""
    tables = {state: TABLE_OF[state] for state in LABELS if state != PENDING}
    numbers = [HowMany(table.objects.all()) for table in tables.values()]
    found = Job.objects.using(database).order_by().values_list(*numbers)[:1]
    counts = dict(zip(tables, found[0] if found else [0] * len(tables), strict=True))
    counts[PENDING] = sum(counts[each] for each in PENDING_STATES)
    return {state: counts[state] for state in LABELS}


def shown_count(number: int) -> str:
    """A number as people write it, or that there are more than so many."""
    shown = number_format(min(number, REACH), force_grouping=True)
    return f"{shown}+" if number > REACH else shown
