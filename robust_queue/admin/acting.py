"""What the actions of the lists do: to the rows that were ticked, or to all that match.

One verb of the lifecycle does both, in batches. A request has to end some time, and the
list has counted only so far: so a large number is asked about first. Where a search can
tell which jobs are meant, many are left to dispatchers. Else what takes too long stops
between two batches and says so.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from robust_queue.lifecycle.cancel import cancel_matching
from robust_queue.lifecycle.discard import discard_matching
from robust_queue.lifecycle.retry import retry_matching
from robust_queue.lifecycle.run_now import run_now_matching
from robust_queue.lifecycle.search import JobSearch
from robust_queue.lifecycle.search_words import SearchError
from robust_queue.lifecycle.selection import TABLES, Tally, count
from robust_queue.models import Job

from .base import REACH, JobRowAdmin, record
from .databases import database_of
from .display import STATES
from .requesting import AT_ONCE, ask_for

PATIENCE = 20.0  # seconds: servers in front of Django rarely have more than thirty

STATE_OF = {table: state for state, table in TABLES.items()}


class Deed(NamedTuple):
    """What is done to jobs, and what is said about it."""

    verb: str
    matching: Callable[..., Tally]
    flag: int  # what becomes of the row, as the log of the admin has it
    note: Promise | str
    done: Any
    question: Any


RETRY = Deed(
    "retry",
    retry_matching,
    CHANGE,
    gettext_lazy("Retried."),
    ngettext_lazy("%d job retried.", "%d jobs retried."),
    ngettext_lazy("Retry %d job?", "Retry all %d jobs that match?"),
)
DISCARD = Deed(
    "discard",
    discard_matching,
    DELETION,
    "",
    ngettext_lazy("%d job discarded.", "%d jobs discarded."),
    ngettext_lazy("Discard %d job for good?", "Discard all %d jobs that match?"),
)


CANCEL = Deed(
    "cancel",
    cancel_matching,
    CHANGE,
    gettext_lazy("Cancelled."),
    ngettext_lazy(
        "%d job cancelled, or asked to end.", "%d jobs cancelled, or asked to end."
    ),
    ngettext_lazy("Cancel %d job?", "Cancel all %d jobs that match?"),
)


RUN_NOW = Deed(
    "run_now",
    run_now_matching,
    CHANGE,
    gettext_lazy("Made due."),
    ngettext_lazy("%d job is due now.", "%d jobs are due now."),
    ngettext_lazy("Run %d job now?", "Run all %d jobs that match now?"),
)


@dataclass(frozen=True, slots=True)
class Listed:
    """The jobs of rows that a list has, as far as they are wanted."""

    state: str
    listed: QuerySet[Any]

    def rows(self, database: str) -> Iterator[QuerySet[Any]]:
        yield self.listed.using(database)


class Patience:
    """Lets the work go on for so long, and remembers if it was not enough."""

    def __init__(self) -> None:
        self._ends = time.monotonic() + PATIENCE
        self.is_over = False

    def __call__(self, tally: Tally) -> bool:
        self.is_over = time.monotonic() > self._ends
        return not self.is_over


class ActingAdmin(JobRowAdmin):
    """Rows of jobs to which something can be done."""

    def act(
        self, deed: Deed, request: HttpRequest, rows: QuerySet[Any]
    ) -> HttpResponse | None:
        """Do it, or ask first; what is done is told, and written down."""
        database = database_of(request)
        wanted = Listed(STATE_OF[self.model], rows)
        is_about_all = request.POST.get("select_across") == "1"
        if is_about_all and "confirmed" not in request.POST:
            number = count(database, wanted)
            if number > REACH:
                return self._ask(deed, request, number)
        if is_about_all and (search := self._search(request, wanted)):
            return ask_for(request, deed.verb, search, self.admin_site)
        ticked = [] if is_about_all else _named(rows)
        patience = Patience()
        tally = deed.matching(database, wanted, on_progress=patience)
        record(request, ticked, deed.flag, str(deed.note))
        if is_about_all:
            sum_up(request, deed, self.model, tally, request.GET.urlencode())
        level = messages.WARNING if patience.is_over else messages.SUCCESS
        self.message_user(request, account_of(deed, tally, patience), level)
        return None

    def _search(self, request: HttpRequest, wanted: Listed) -> JobSearch | None:
        """What finds them, if they are too many to be waited for.

        A filter that a search cannot express, such as one for dates, keeps it here. So
        does a task that was looked for among the newest rows: a search would find older
        ones as well, which the list has never shown.
        """
        search = _search_in(request, wanted.state)
        rows = wanted.listed.order_by().values("pk")
        if search is None or rows[: AT_ONCE + 1].count() <= AT_ONCE:
            return None
        is_by_task = search.text is not None and not search.finds_few
        return None if is_by_task and self._has_too_many(request) else search

    def _has_too_many(self, request: HttpRequest) -> bool:
        """Are there more rows than a search for a task looks at?"""
        rows = self.get_queryset(request).order_by().values("pk")
        return bool(rows[REACH : REACH + 1].exists())

    def _ask(self, deed: Deed, request: HttpRequest, number: int) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": deed.question % number,
            "opts": self.opts,
            "media": self.media,
            # Without one that is ticked, Django takes it for no action at all.
            "name_of_ticked": ACTION_CHECKBOX_NAME,
            "ticked": request.POST.getlist(ACTION_CHECKBOX_NAME)[:1],
            "action": _action_in(request),
            "back": request.get_full_path(),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/robust_queue/question.html", context)


class DiscardableAdmin(ActingAdmin):
    """Rows of jobs that can be discarded."""

    actions: Any = ("discard_selected",)

    @admin.action(
        description=gettext_lazy("Discard selected jobs"), permissions=["discard"]
    )
    def discard_selected(
        self, request: HttpRequest, rows: QuerySet[Any]
    ) -> HttpResponse | None:
        return self.act(DISCARD, request, rows)


class CancellableAdmin(ActingAdmin):
    """Rows of jobs that can be cancelled."""

    actions: Any = ("cancel_selected",)

    @admin.action(
        description=gettext_lazy("Cancel selected jobs"), permissions=["cancel"]
    )
    def cancel_selected(
        self, request: HttpRequest, rows: QuerySet[Any]
    ) -> HttpResponse | None:
        return self.act(CANCEL, request, rows)


# What a list is filtered by, and what a search calls it.
_NAMES = {"queue": "queue", "kind": "kind", "exception": "error", "q": "text"}
_PAGE = "p"


def _search_in(request: HttpRequest, state: str) -> JobSearch | None:
    asked = {name: str(value) for name, value in request.GET.items()}
    given = {name for name, value in asked.items() if value.strip()} - {_PAGE}
    if given - _NAMES.keys():
        return None
    named: dict[str, Any] = {_NAMES[name]: asked[name] for name in given}
    if "text" in named:
        named["text"] = named["text"].strip()  # as the list does, of this one alone
    try:
        return JobSearch(state=state, **named)
    except SearchError:
        return None


def _action_in(request: HttpRequest) -> str:
    """The action that was chosen: there is a menu above the list, and maybe below."""
    chosen = request.POST.getlist("action")
    index = request.POST.get("index", "0")
    at = int(index) if index.isdecimal() else 0
    return chosen[at] if at < len(chosen) else ""


def _named(rows: QuerySet[Any]) -> list[Job]:
    """The jobs of the rows, with what names them and without their arguments."""
    named = rows.values_list("pk", "job__task_path")
    return [Job(id=job_id, task_path=path) for job_id, path in named]


def sum_up(
    request: HttpRequest, deed: Deed, model: Any, tally: Tally, query: str
) -> None:
    """Write down as one what was done to all that matched; they may be very many."""
    user_id: Any = request.user.pk
    LogEntry.objects.create(
        user_id=user_id,
        content_type=ContentType.objects.get_for_model(model),
        object_repr=deed.done % tally.done,
        action_flag=deed.flag,
        change_message=_("All that matched ?%s") % query,
    )


def account_of(deed: Deed, tally: Tally, patience: Patience) -> str:
    """What is said in the end: how many, how many not and why, and if it is over."""
    told = [str(deed.done % tally.done)]
    if tally.passed_over:
        reasons = ", ".join(
            f"{number} {STATES.get(reason, reason)}"
            for reason, number in sorted(tally.passed_over.items())
        )
        told.append(_("Passed over: %s.") % reasons)
    if patience.is_over:
        told.append(_("There was no time for more: do it again to go on."))
    return " ".join(told)
