"""Recurring tasks, and the instants at which they were enqueued or left out.

Those that were made at run time can be changed here, by the same verbs as from code.
"""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from robust_queue.exceptions import RecurringTaskError
from robust_queue.lifecycle.timetable import schedule
from robust_queue.models import RecurringExecution, RecurringTask
from robust_queue.models.recurring import Outcome

from . import display, redaction
from .databases import database_of
from .permissions import may_edit, may_look
from .recurring_form import LIST_OF_ZONES, RecurringForm, zone_names
from .recurring_history import MarkedChangeList, marks
from .recurring_orders import ORDER_PAGE, OrderedAdmin
from .recurring_page import (
    STATES,
    in_its_zone,
    in_words,
    page_of,
    runs_of,
    zone_of,
)

_WHAT = ["key", "task_path", "schedule", "timezone", "description", "enabled"]
_OUT_OF_TURN = ["on_missed", "missed_limit", "overlap", "jitter"]
_MOMENTS = ["next_run", "created_at", "updated_at"]
_ORIGIN = ["static", "declared_at", "retired_at"]


@admin.register(RecurringTask)
class RecurringTaskAdmin(OrderedAdmin):
    """What runs again and again, and the form to have more of it."""

    is_in_index = True
    form = RecurringForm
    list_display = [
        "key",
        "task",
        "shown_schedule",
        "shown_state",
        "next_run",
        "last_outcome",
        "queue_name",
    ]
    list_filter = ["enabled", "static"]
    name_lookups = ("key", "task_path")
    search_help_text = _("The whole key, or the whole path of a task.")
    ordering = ["key"]
    wide_columns = ("arguments", "description")
    readonly_fields = ["shown_arguments", *_MOMENTS, *_ORIGIN]

    # ── Who may do what ────────────────────────────────────────────────────────

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return may_edit(request, "add", self.model)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only what was made at run time: the rest is changed where it is declared.

        Nor by those who would have to overwrite what they do not see.
        """
        if obj is not None and (obj.static or redaction.is_closed(request, obj)):
            return False
        return may_edit(request, "change", self.model)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [*self.readonly_fields, *(["key"] if obj else [])]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        is_form = obj is None or self.has_change_permission(request, obj)
        arguments = "arguments" if is_form else "shown_arguments"
        origin = [] if is_form else _ORIGIN
        fieldsets = [
            (None, {"fields": _WHAT}),
            (_("Call"), {"fields": [arguments, "queue_name", "priority"]}),
            (_("Out of turn"), {"fields": _OUT_OF_TURN}),
        ]
        if obj is not None:
            fieldsets.append((_("So far"), {"fields": [*_MOMENTS, *origin]}))
        return fieldsets

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, *args, **kwargs)
        form.database = database_of(request)
        return form

    # ── The list ───────────────────────────────────────────────────────────────

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        return MarkedChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        past = RecurringExecution.objects.filter(task_key=OuterRef("key"))
        latest = past.order_by("-run_at").values("outcome")[:1]
        rows: QuerySet[Any]
        rows = super().get_queryset(request).annotate(outcome=Subquery(latest))
        return rows

    @admin.display(description=_("task"))
    def task(self, row: RecurringTask) -> Any:
        return display.near_path(row.task_path)

    @admin.display(description=_("schedule"))
    def shown_schedule(self, row: RecurringTask) -> Any:
        words = in_words(row)
        if words.casefold() == row.schedule.casefold():
            words = ""
        beneath = [(line,) for line in (words, _breakable(row.timezone)) if line]
        lines = format_html_join("", '<span class="rqueue-words">{}</span>', beneath)
        return format_html("{}{}", row.schedule, lines)

    @admin.display(description=_("state"))
    def shown_state(self, row: RecurringTask) -> Any:
        return STATES[row.state]

    @admin.display(description=_("next run"))
    def next_run(self, row: RecurringTask) -> str:
        if row.state != "active" or row.next_run_at is None:
            return ""
        return in_its_zone(row, row.next_run_at)

    @admin.display(description=_("last outcome"))
    def last_outcome(self, row: Any) -> Any:
        labels: dict[Any, Any] = dict(Outcome.choices)
        return format_html("{} {}", labels.get(row.outcome) or "-", marks(row.latest))

    @admin.display(description=_("arguments"))
    @redaction.concealed
    def shown_arguments(self, row: RecurringTask) -> Any:
        openly = redaction.is_open(row)
        return display.arguments(row.arguments, row.task_path, openly=openly)

    # ── The page of one ────────────────────────────────────────────────────────

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row: Any = kwargs.get("obj")
        if row is None or self.has_change_permission(request, row):
            context |= {"zones": zone_names(), "list_of_zones": LIST_OF_ZONES}
        if row is not None:
            context["page"] = page_of(row, self.admin_site)
            context["page"]["marks"] = marks(context["page"]["latest"])
            context["page"]["notes"] += self._refusals(request, row)
            context["urls"] = dict(self._ways_on(request, row))
        return super().render_change_form(request, context, *args, **kwargs)

    def _refusals(self, request: HttpRequest, row: RecurringTask) -> list[Any]:
        is_refused = not row.static and redaction.is_closed(request, row)
        may_else = may_edit(request, "change", self.model)
        return [redaction.REFUSAL] if is_refused and may_else else []

    def _ways_on(
        self, request: HttpRequest, row: RecurringTask
    ) -> Iterator[tuple[str, str]]:
        if self.may_order(request) and row.retired_at is None:
            yield "order", self.url_of(ORDER_PAGE, row)
        site, model = self.admin_site, RecurringExecution
        if site.is_registered(model) and may_look(request, model):
            name = "admin:robust_queue_recurringexecution_changelist"
            found = {"task_key": row.key}
            yield "history", reverse(name, query=found, current_app=site.name)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except RecurringTaskError as refusal:
            return self._refused(request, refusal)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().delete_view(request, *args, **kwargs)
        except RecurringTaskError as refusal:
            return self._refused(request, refusal)

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        database = database_of(request)
        row = schedule(database, obj.key, obj.task_path, replace=change, **form.options)
        obj.pk = row.pk
        obj.refresh_from_db(using=database)

    def response_add(self, request: HttpRequest, obj: Any, *args: Any) -> HttpResponse:
        response = super().response_add(request, obj, *args)
        self._tell_when(request, obj)
        return response

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        response = super().response_change(request, obj)
        self._tell_when(request, obj)
        return response

    def _tell_when(self, request: HttpRequest, row: RecurringTask) -> None:
        """What was meant, to be compared with what was written."""
        facts = {
            "words": in_words(row),
            "zone": zone_of(row),
            "runs": " · ".join(runs_of(row)),
        }
        told = gettext("%(words)s (%(zone)s). Next runs: %(runs)s") % facts
        if not row.enabled:
            told = gettext("Paused. Once resumed: %s") % told
        self.message_user(request, told, messages.INFO)

    def _refused(self, request: HttpRequest, refusal: Exception) -> HttpResponse:
        """Somebody was faster than the form."""
        self.message_user(request, str(refusal), messages.ERROR)
        return HttpResponseRedirect(request.get_full_path())


def _breakable(zone: str) -> SafeString:
    """The name of a time zone, which may be broken where a column is narrow."""
    parts = ((part,) for part in zone.split("/"))
    return format_html_join(SafeString("/<wbr>"), "{}", parts)
