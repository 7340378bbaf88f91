"""What operators do to recurring tasks: run them now, pause, resume and delete them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.contrib import admin, messages
from django.contrib.admin import AdminSite
from django.contrib.admin.actions import delete_selected
from django.contrib.admin.models import CHANGE
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy
from django.views.decorators.http import require_POST

from robust_queue.exceptions import RobustQueueError
from robust_queue.lifecycle import timetable
from robust_queue.models import Job, RecurringTask

from . import display
from .base import ReadOnlyAdmin, record
from .databases import database_of
from .permissions import may_edit
from .recurring_page import is_declared

# As many errors, keys or jobs are named one by one.
NAMED = 5
CHANGE_PAGE = "robust_queue_recurringtask_change"
ORDER_PAGE = "robust_queue_recurringtask_order"


class Order(NamedTuple):
    """What is done, what the log says of it, and what people are told."""

    verb: Callable[[str, str], Any]
    permission: str
    note: Promise
    done: Any
    was_so: Any = ""


ORDERS = {
    "run": Order(
        timetable.run_now,
        "run",
        gettext_lazy("Run by hand."),
        ngettext_lazy(
            "%d recurring task was enqueued.", "%d recurring tasks were enqueued."
        ),
    ),
    "pause": Order(
        timetable.pause,
        "change",
        gettext_lazy("Paused."),
        ngettext_lazy("%d recurring task paused.", "%d recurring tasks paused."),
        ngettext_lazy("%d was paused already.", "%d were paused already."),
    ),
    "resume": Order(
        timetable.resume,
        "change",
        gettext_lazy("Resumed."),
        ngettext_lazy("%d recurring task resumed.", "%d recurring tasks resumed."),
        ngettext_lazy("%d was not paused.", "%d were not paused."),
    ),
}


@dataclass(slots=True)
class Report:
    """What has become of an order: done, needless, or refused."""

    order: Order
    database: str
    done: list[RecurringTask] = field(default_factory=list)
    jobs: list[Any] = field(default_factory=list)
    needless: int = 0
    refusals: list[str] = field(default_factory=list)

    def carry_out(self, row: RecurringTask) -> None:
        """Do it to one more."""
        try:
            result = self.order.verb(self.database, row.key)
        except (RobustQueueError, ValueError) as refusal:
            self.refusals.append(str(refusal))
            return
        if not result:
            self.needless += 1
            return
        self.done.append(row)
        self.jobs += filter(None, [getattr(result, "job_id", None)])

    def told(self, site: AdminSite) -> Iterator[str]:
        """What went well, with links to the first jobs."""
        if self.done:
            yield self.order.done % len(self.done)
        if self.needless:
            yield self.order.was_so % self.needless
        for job_id in self.jobs[:NAMED]:
            link = display.link(site, Job, job_id, job_id)
            yield format_html(_("Job {}."), link)


class OrderedAdmin(ReadOnlyAdmin):
    """Recurring tasks to which something is done, one or many at a time."""

    actions: Any = (
        "run_selected",
        "pause_selected",
        "resume_selected",
        "delete_selected",
    )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What is declared would come back: it has to go where it is declared."""
        is_fixed = obj is not None and is_declared(obj)
        return may_edit(request, "delete", self.model) and not is_fixed

    @admin.action(description=gettext_lazy("Run selected now"), permissions=["run"])
    def run_selected(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        self._carry_out(ORDERS["run"], request, rows)

    @admin.action(description=gettext_lazy("Pause selected"), permissions=["change"])
    def pause_selected(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        self._carry_out(ORDERS["pause"], request, rows)

    @admin.action(description=gettext_lazy("Resume selected"), permissions=["change"])
    def resume_selected(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        self._carry_out(ORDERS["resume"], request, rows)

    @admin.action(
        description=gettext_lazy("Delete selected %(verbose_name_plural)s"),
        permissions=["delete"],
    )
    def delete_selected(
        self, request: HttpRequest, rows: QuerySet[Any]
    ) -> HttpResponse | None:
        """Django's, which asks first; what is declared is left out, and told."""
        declared = rows.filter(static=True, retired_at=None)
        for key in declared.values_list("key", flat=True)[:NAMED]:
            told = _("“%s” is declared in code or settings: it can be deleted there.")
            self.message_user(request, told % key, messages.ERROR)
        others = rows.exclude(static=True, retired_at=None)
        if not others.exists():
            return None
        answer: HttpResponse | None = delete_selected(self, request, others)
        return answer

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        timetable.unschedule(database_of(request), obj.key)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            try:
                self.delete_model(request, row)
            except RobustQueueError as refusal:
                self.message_user(request, str(refusal), messages.ERROR)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.order_view)
        own = path("<path:object_id>/order/", view, name=ORDER_PAGE)
        return [own, *super().get_urls()]

    @method_decorator(require_POST)
    def order_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Do what a button of the page says, and show the page again."""
        order = ORDERS.get(request.POST.get("order", ""))
        is_allowed = self.may_order(request, *filter(None, [order]))
        if not self.has_view_permission(request) or not is_allowed:
            raise PermissionDenied
        row: Any = self.get_object(request, unquote(object_id))
        if row is None or order is None:
            raise Http404
        if refusal := self.refusal(request, self.url_of(CHANGE_PAGE, row)):
            return refusal
        self._carry_out(order, request, [row])
        return HttpResponseRedirect(self.url_of(CHANGE_PAGE, row))

    def may_order(self, request: HttpRequest, *orders: Order) -> bool:
        """May this user give any of these orders, or of all that there are?"""
        asked = {each.permission for each in orders or ORDERS.values()}
        return any(getattr(self, f"has_{it}_permission")(request) for it in asked)

    def url_of(self, page: str, row: RecurringTask) -> str:
        """The address of a page about this row, on this site."""
        site = self.admin_site.name
        return reverse(f"admin:{page}", args=[quote(row.pk)], current_app=site)

    def _carry_out(
        self, order: Order, request: HttpRequest, rows: Iterable[RecurringTask]
    ) -> None:
        report = Report(order, database_of(request))
        for row in rows:
            report.carry_out(row)
        record(request, report.done, CHANGE, str(order.note))
        if told := [*report.told(self.admin_site)]:
            sentences = format_html_join(" ", "{}", ((each,) for each in told))
            self.message_user(request, sentences)
        self._tell_refusals(request, report.refusals)

    def _tell_refusals(self, request: HttpRequest, refusals: list[str]) -> None:
        for each in refusals[:NAMED]:
            self.message_user(request, each, messages.ERROR)
        if (more := len(refusals) - NAMED) > 0:
            told = ngettext("%d more was refused.", "%d more were refused.", more)
            self.message_user(request, told % more, messages.ERROR)
