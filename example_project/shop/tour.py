"""A tour of the dashboard: every page is looked at, and must have something to show."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.urls import reverse

from robust_queue.lifecycle.statistics import PERIODS
from robust_queue.models.jobs import STATES

from .web import Visitor

LONGEST = 20.0
OK = 200
BODY = re.compile(r"<tbody>(.*?)</tbody>", re.DOTALL)
ROW = re.compile(r"<tr[ >]")
FIELD = re.compile(r'class="form-row[ "]')
# A curve or bars; a chart of nothing has a path without steps.
CURVE = re.compile(r'<path class="rqueue-series-\d" d="M')


@dataclass(frozen=True, slots=True)
class Page:
    """An address, and what is counted there: fields are those of the first row."""

    title: str
    address: str
    unit: str = "rows"


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen of a page."""

    page: Page
    status: int
    number: int

    @property
    def is_worth_it(self) -> bool:
        return self.status == OK and self.number > 0

    @property
    def row(self) -> tuple[str, str, str]:
        return self.page.title, str(self.status), f"{self.number} {self.page.unit}"


def take(visitor: Visitor) -> list[Sight]:
    """Look at every page; again at those that show nothing yet, for a while."""
    sights = [_look(visitor, page) for page in pages()]
    ends = time.monotonic() + LONGEST
    while not all(s.is_worth_it for s in sights) and time.monotonic() < ends:
        time.sleep(0.2)
        sights = [s if s.is_worth_it else _look(visitor, s.page) for s in sights]
    return sights


def pages() -> Iterator[Page]:
    """The overview of each period, jobs of each state, all lists, and rows of them."""
    overview, jobs = _address("overview"), _address("job")
    for period in PERIODS:
        yield Page(f"overview, {period}", f"{overview}?period={period}", "curves")
    for relation in STATES:
        state = relation.removesuffix("_execution")
        yield Page(f"jobs, {state}", f"{jobs}?state={state}")
    for model in _models():
        if model._meta.model_name != "overview":
            yield from _pages_of(model)


def _pages_of(model: Any) -> Iterator[Page]:
    title = str(model._meta.verbose_name_plural)
    yield Page(title, _address(model._meta.model_name))
    # Without a table of its own it is one page, and has none for each row.
    if model._meta.managed:
        address = _address(model._meta.model_name)
        yield Page(f"{title}: the first", address, "fields")


def number_in(text: str, unit: str) -> int:
    """How many rows, fields or curves a page shows."""
    if unit == "rows":
        return sum(len(ROW.findall(body)) for body in BODY.findall(text))
    return len((CURVE if unit == "curves" else FIELD).findall(text))


def first_row_in(text: str, address: str) -> str | None:
    """The address of the first row's own page."""
    found = re.search(rf'href="({re.escape(address)}[^"/]+/change/)', text)
    return found and found[1]


def _look(visitor: Visitor, page: Page) -> Sight:
    status, text = visitor.look(page.address)
    if page.unit == "fields":
        # Found anew each time: a job may have moved on since the list was shown.
        row = first_row_in(text, page.address)
        status, text = visitor.look(row) if row else (status, "")
    return Sight(page, status, number_in(text, page.unit))


def _models() -> list[Any]:
    registered = admin.site._registry
    return [each for each in registered if each._meta.app_label == "robust_queue"]


def _address(model_name: str) -> str:
    return reverse(f"admin:robust_queue_{model_name}_changelist")
