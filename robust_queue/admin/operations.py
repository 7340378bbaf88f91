"""Operations: what somebody wants done to very many jobs, and how far it has come."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path, reverse
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from robust_queue.configuration import current
from robust_queue.lifecycle.deeds import VERBS
from robust_queue.lifecycle.operations import stop
from robust_queue.lifecycle.search import JobSearch
from robust_queue.lifecycle.search_words import SearchError
from robust_queue.models import Job, Operation, Process

from . import display, permissions
from .base import ReadOnlyAdmin, record
from .databases import home_of
from .job_deeds import may, word_for
from .requesting import LABELS

STATUSES = {
    "waiting": _("waiting"),
    "running": _("under way"),
    "stopped": _("stopped"),
    "given up": _("given up"),
    "finished": _("finished"),
}


@admin.register(Operation)
class OperationAdmin(ReadOnlyAdmin):
    """Whoever may look at jobs, or do something to them, may see what is done."""

    is_in_index = True
    change_form_template = "admin/robust_queue/operation/change_form.html"
    list_display = [
        *("what", "which", "shown_status", "progress", "requested_by", "requested_at"),
    ]
    list_display_links = ["what", "which"]
    ordering = ["-pk"]
    fields = [
        *("what", "which", "shown_status", "progress", "done", "shown_reasons"),
        *("shown_problem", "requested_by", "requested_at", "started_at", "finished_at"),
    ]
    readonly_fields = [
        *("what", "which", "shown_status", "progress", "shown_reasons"),
        "shown_problem",
    ]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_look = permissions.may_look(request, Job)
        may_do = any(may(request, verb) for verb in VERBS)
        return super().has_view_permission(request, obj) or may_look or may_do

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.stop_view)
        name = "robust_queue_operation_stop"
        return [path("<path:object_id>/stop/", view, name=name), *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> Any:
        operation = context.get("original")
        if operation is not None:
            is_open = operation.finished_at is None
            context["is_open"] = is_open
            if is_open and may(request, operation.verb):
                context["stop_url"] = self._url("stop", operation)
        return super().render_change_form(request, context, *args, **kwargs)

    def stop_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Do no more of it. Takes the permission that it took to ask for it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        operation = self.get_object(request, unquote(object_id))
        if operation is None:
            raise Http404
        if not may(request, operation.verb):
            raise PermissionDenied
        self._stop(request, operation)
        return HttpResponseRedirect(self._url("change", operation))

    def _stop(self, request: HttpRequest, operation: Operation) -> None:
        if stop(home_of(operation), operation.pk):
            record(request, [operation], CHANGE, gettext("Stopped."))
            self.message_user(request, gettext("Stopped. What is done stays done."))
        else:
            told = gettext("It was over already.")
            self.message_user(request, told, messages.WARNING)

    @admin.display(description=_("what"))
    def what(self, operation: Operation) -> Any:
        return LABELS.get(operation.verb, operation.verb)

    @admin.display(description=_("which jobs"))
    def which(self, operation: Operation) -> str:
        return display.plain(_words(operation))

    @admin.display(description=_("status"))
    def shown_status(self, operation: Operation) -> SafeString:
        label = STATUSES[operation.status]
        return format_html('<span class="rqueue-badge">{}</span>', label)

    @admin.display(description=_("progress"))
    def progress(self, operation: Operation) -> SafeString:
        return _progress(operation)

    @admin.display(description=_("passed over"))
    def shown_reasons(self, operation: Operation) -> Any:
        said = [
            format_html("{} {}", _number(number), word_for(reason))
            for reason, number in sorted(operation.reasons.items())
        ]
        return display.sentences(said) if said else "-"

    @admin.display(description=_("problem"))
    def shown_problem(self, operation: Operation) -> Any:
        if operation.finished_at is None and not _is_any_dispatcher_alive(operation):
            return gettext("It waits for a dispatcher, and none is alive.")
        if not operation.problem:
            return "-"
        told = display.block(operation.problem)
        if operation.finished_at is None:
            return format_html("{}{}", told, gettext("It will be tried again."))
        return told

    def _url(self, page: str, operation: Operation) -> str:
        name, site = f"admin:robust_queue_operation_{page}", self.admin_site.name
        return reverse(name, args=[quote(operation.pk)], current_app=site)


def _words(operation: Operation) -> str:
    try:
        return JobSearch.read(operation.criteria).discreet_words
    except SearchError:
        return str(operation.criteria)  # of a later version


def _progress(operation: Operation) -> SafeString:
    """A bar, and the same in words; without a goal it only tells that it moves."""
    met, goal = operation.matched, operation.expected
    if operation.finished_at is not None:
        return format_html("{}", gettext("%s jobs met") % _number(met))
    if goal is None:
        words = gettext("%s jobs met so far") % _number(met)
        return format_html("<progress></progress> {}", words)
    told = gettext("%(met)s of %(goal)s jobs met")
    words = told % {"met": _number(met), "goal": _number(goal)}
    return format_html(
        '<progress max="{}" value="{}"></progress> {}',
        max(goal, met, 1),
        met,
        words,
    )


def _number(number: int) -> str:
    return number_format(number, force_grouping=True)


def _is_any_dispatcher_alive(operation: Operation) -> bool:
    processes = Process.objects.using(home_of(operation)).filter(kind="Dispatcher")
    alive = processes.heard_within(current().process_alive_threshold)
    return bool(alive.exists())
