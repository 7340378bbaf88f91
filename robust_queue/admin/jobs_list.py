"""The list of jobs: its pages, its search, and what its columns show."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle import redact
from robust_queue.lifecycle.search import TABLE_OF, JobSearch, bounded
from robust_queue.models import Job

from . import display
from .base import LeanChangeList
from .jobs_filter import JobsFilter
from .keyset import NEWER, OLDER, Book, Page, Place
from .redaction import sees_all, sees_contents
from .tabs import LABELS, Tab, counts_of_states, shown_count, tabs

SEARCH_HELP = {
    True: _(
        "The id of a job, the whole path of a task, or a text in the arguments. Looks "
        "through 5,000 jobs at a time, the newest first."
    ),
    False: _(
        "The id of a job, or the whole path of a task. Looks through 5,000 jobs at a "
        "time, the newest first."
    ),
}

# So many jobs a page looks at, where no index finds those it is for.
STRETCH = 5_000

SECOND = timedelta(seconds=1)
# To the second: of most jobs, all of it happens within a minute.
MOMENT = "j M Y, H:i:s"


class JobChangeList(LeanChangeList):
    """Jobs under tabs, a page at a time, each page as cheap as the first."""

    page: Page
    tabs: list[Tab]

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        self.place = Place.named_in(request.GET)
        self.searches_arguments = may_search_arguments(request)
        self.search_help_text = str(SEARCH_HELP[self.searches_arguments])
        self._tidy()
        return super().get_queryset(request, *args, **kwargs)

    def get_filters_params(self, params: Any = None) -> Any:
        # Django would look up whatever else is a column, through the whole table.
        found = super().get_filters_params(params)
        if found.keys() - JobsFilter.names():
            raise IncorrectLookupParameters
        return found

    @property
    def has_null(self) -> bool:
        return False  # the form passes it over, and tells so

    def get_ordering(self, request: HttpRequest, queryset: Any) -> list[Any]:
        """The one that keysets need, whatever the address asks for."""
        return ["-pk"]

    def get_ordering_field_columns(self) -> dict[int, Any]:
        return {}

    def get_results(self, request: HttpRequest) -> None:
        self.page = self._book().open(self.place)
        self.result_list = self.page.rows
        # As many as are shown: nobody has counted the others.
        self.result_count = self.full_result_count = len(self.page.rows)
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.show_admin_actions = True
        self.paginator = Paginator(self.page.rows, self.list_per_page)
        counted = not (self.query or self.filter.narrows)
        counts = counts_of_states(self.root_queryset.db) if counted else {}
        self.tabs = tabs(self.filter.state, self.get_query_string, counts)

    @property
    def filter(self) -> JobsFilter:
        """The one there is."""
        spec: Any = self.filter_specs[0]
        return spec  # type: ignore[no-any-return]

    @property
    def search(self) -> JobSearch:
        """All that is asked for, also by the field above the list."""
        return replace(
            self.filter.search,
            text=self.query.strip() or None,
            in_arguments=self.searches_arguments,
        )

    @property
    def addresses(self) -> dict[str, str]:
        """The ways to other pages, as far as there are any."""
        page = self.page
        places = {NEWER: page.newer, OLDER: page.older}
        found = {k: self.get_query_string({k: pk}) for k, pk in places.items() if pk}
        return found if page.is_newest else {"newest": self.get_query_string(), **found}

    @property
    def stretch(self) -> int:
        """How many jobs a page looks through, if no index finds those it is for."""
        search = self.search
        is_long = search.is_composite or search.is_long_in(self.root_queryset.db)
        return STRETCH if is_long and not search.finds_few else 0

    @property
    def shown_stretch(self) -> str:
        return shown_count(self.stretch)

    def _book(self) -> Book:
        asked = self.filter
        is_one = bool(asked.state) and not asked.search.is_composite
        relation = f"{asked.state}_execution" if is_one else ""
        table = TABLE_OF[asked.state].objects.using(self.root_queryset.db)
        searched = table.filter(**asked.bounds())
        return Book(
            bounded(self.queryset, asked.bounds(), relation),
            size=self.list_per_page,
            searched=searched if self.stretch else None,
            stretch=self.stretch,
            relation=relation,
        )

    def _tidy(self) -> None:
        """Leave out of all links what was left empty, and the place of this page."""
        kept = {
            name: values
            for name, values in self.filter_params.items()
            if name not in {OLDER, NEWER} and values[-1]
        }
        self.filter_params = kept
        self.params = {name: values[-1] for name, values in kept.items()}


def may_search_arguments(request: HttpRequest) -> bool:
    """May they look for a text in arguments?"""
    return redact.is_searchable(
        sees_contents=sees_contents(request), sees_all=sees_all(request)
    )


def execution_of(job: Job) -> Any:
    """The row that tells where it stands, or None."""
    return getattr(job, f"{job.state}_execution", None)


def badge(job: Job) -> SafeString:
    """Its state, told apart by the word and not by a colour."""
    label = LABELS.get(job.state) or display.STATES[job.state]
    return format_html('<span class="rqueue-badge">{}</span>', label)


def short_id(job: Job) -> SafeString:
    """Enough of it to tell it from its neighbours; all of it on demand."""
    text = str(job.pk)
    return format_html('<span title="{}">{}…{}</span>', text, text[:8], text[-4:])


def ended(job: Job) -> SafeString | str:
    """When it ended, and how long its last attempt took."""
    row = execution_of(job)
    if job.state not in {"finished", "failed"}:
        return "-"
    return format_html(
        '{} <span class="rqueue-words">{}</span>',
        told(row.finished_at),
        took(row.finished_at - row.started_at),
    )


def told(moment: datetime) -> str:
    """A moment by the clocks of whoever looks."""
    is_aware = timezone.is_aware(moment)
    return date_format(timezone.localtime(moment) if is_aware else moment, MOMENT)


def took(length: timedelta) -> str:
    """A length of time, which for most jobs is less than a second."""
    if length >= SECOND:
        return display.duration(length)
    return str(_("%d ms") % (length / timedelta(milliseconds=1)))
