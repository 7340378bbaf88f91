"""All jobs that match: the question whether they are meant, and the request.

What is asked for is carried out by dispatchers, however long that takes: see
``lifecycle/operations.py``.
"""

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from robust_queue.lifecycle.operations import expected, states_for
from robust_queue.lifecycle.search import JobSearch

from . import display
from .base import REACH, ReadOnlyAdmin
from .databases import database_of
from .job_deeds import DEEDS, may, verbs_for
from .jobs_filter import FilterForm, search_of
from .jobs_list import may_search_arguments
from .requesting import LABELS, ask_for
from .tabs import shown_count

VERB = "verb"
TEXT = "q"
FILTERS = frozenset({*FilterForm.base_fields, TEXT})

# What comes of it, for the question.
CONSEQUENCES = {
    "retry": gettext_lazy("They go back to their queues, for one more attempt each."),
    "discard": gettext_lazy("They are deleted for good, with their past."),
    "cancel": gettext_lazy(
        "Those that wait are ended, those that run are asked to end. They are kept as "
        "failed."
    ),
    "run_now": gettext_lazy("They are due at once, and go the way of all that are."),
}


class BulkAdmin(ReadOnlyAdmin):
    """A list to all of which something can be done."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.bulk_view)
        return [path("bulk/", view, name="robust_queue_job_bulk"), *super().get_urls()]

    def bulk_ways(self, request: HttpRequest, state: str) -> list[tuple[Any, str]]:
        """The ways to the questions that this user may be asked, for this list."""
        address = reverse(
            "admin:robust_queue_job_bulk", current_app=self.admin_site.name
        )
        kept = {k: v for k, v in request.GET.items() if k in FILTERS and v}
        return [
            (LABELS[verb], f"{address}?{urlencode({**kept, VERB: verb})}")
            for verb in verbs_for(request, state)
        ]

    def bulk_view(self, request: HttpRequest) -> HttpResponse:
        """Ask, or write the request down."""
        verb = request.GET.get(VERB, "")
        if verb not in DEEDS:
            raise BadRequest("There is no such verb.")
        if not self.has_view_permission(request) or not may(request, verb):
            raise PermissionDenied
        search = _search_in(request)
        if search is None or not _fits(verb, search):
            told = _("That filter makes no sense here: nothing was done.")
            return self._refuse(request, told)
        if refusal := self.refusal(request, self._back(request)):
            return refusal
        if request.method == "POST":
            return ask_for(request, verb, search, self.admin_site)
        return self._ask(request, verb, search)

    def _ask(self, request: HttpRequest, verb: str, search: JobSearch) -> HttpResponse:
        number = expected(database_of(request), verb, search, most=REACH)
        context = {
            **self.admin_site.each_context(request),
            **self.frame(request),
            "title": _("%s all that match?") % LABELS[verb],
            "opts": self.opts,
            "media": self.media,
            "words": display.plain(search.words),
            "number": None if number is None else shown_count(number),
            "consequence": CONSEQUENCES[verb],
            "label": LABELS[verb],
            "back": self._back(request),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/robust_queue/job/bulk.html", context)

    def _refuse(self, request: HttpRequest, told: str) -> HttpResponse:
        self.message_user(request, told, messages.ERROR)
        return HttpResponseRedirect(self._back(request))

    def _back(self, request: HttpRequest) -> str:
        kept = {name: value for name, value in request.GET.items() if name != VERB}
        return display.list_url(self.admin_site, "job", urlencode(kept))


def _fits(verb: str, search: JobSearch) -> bool:
    try:
        return bool(states_for(verb, search))
    except ValueError:
        return False


def _search_in(request: HttpRequest) -> JobSearch | None:
    """What the address asks for; None if any of it makes no sense.

    A list passes over such a value. Here it would mean more jobs than were meant.
    """
    form = FilterForm(request.GET)
    if request.GET.keys() - FILTERS - {VERB} or not form.is_valid():
        return None
    text = request.GET.get(TEXT, "").strip()
    if "\0" in text:
        return None
    return replace(
        search_of(form.cleaned_data),
        text=text or None,
        in_arguments=bool(text) and may_search_arguments(request),
    )
